// Light or dark: as the system says, unless somebody chose. The choice is part of the address, and
// is remembered where the browser lets a file remember things.

const KEY = "pitviper-theme";

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // pages opened from a file may not store anything
  }
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // then the address alone has it
  }
}

export class Theme {
  constructor(app, onChange) {
    this.app = app;
    this.onChange = onChange;
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.system.addEventListener("change", () => {
      this.apply();
      onChange();
    });
  }

  get isDark() {
    const {theme} = this.app.settings;
    const chosen = theme === "auto" ? remembered() : theme;
    return chosen === "dark" || (chosen !== "light" && this.system.matches);
  }

  apply() {
    this.app.dark = this.isDark;
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
  }

  toggle() {
    const theme = this.isDark ? "light" : "dark";
    remember(theme);
    this.app.state.set({theme}, {replace: true});
  }
}
