"""Makes an index of words over some made-up articles: something to look at in pitviper view.

    pitviper record -- python examples/word_index.py
    pitviper view

With --slow, words to leave out are in a list, not in a set: something to compare with.
"""
import collections
import hashlib
import json
import random
import re
import sys
import threading

WORDS = [f"{a}{b}{c}" for a in ("pro", "sam", "sta", "tra", "int") for b in ("fi", "pl", "ck", "ce")
         for c in ("ler", "ing", "ed", "s", "or", "")]
COMMON = WORDS[::3] + [word.upper() for word in WORDS]


class Article:
    def __init__(self, seed):
        rng = random.Random(seed)
        self.title = f"article {seed}"
        self.text = ", ".join(rng.choices(WORDS, k=4000)).upper()

    def words(self):
        return [word.lower() for word in re.findall(r"[A-Z]+", self.text)]


class Index:
    def __init__(self, common):
        self.common = common
        self.places = collections.defaultdict(list)

    def add(self, article):
        for position, word in enumerate(article.words()):
            if word not in self.common:
                self.places[word].append((article.title, position))

    def ranked(self):
        return sorted(self.places.items(), key=lambda item: (-len(item[1]), item[0]))

    def as_json(self):
        return json.dumps({word: places for word, places in self.ranked()})


def checksum(text, rounds):
    digest = text.encode()
    for _ in range(rounds):
        digest = hashlib.sha256(digest + text.encode()).digest()
    return digest


def fetch(articles, count):
    for seed in range(count):
        articles.append(Article(seed))


def main():
    count = 60
    articles = []
    threads = [threading.Thread(target=fetch, args=(articles, count)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index = Index(COMMON if "--slow" in sys.argv else set(COMMON))
    for article in articles:
        index.add(article)
    text = index.as_json()
    checksum(text, 60)
    print(len(json.loads(text)), "words in", len(articles), "articles")


main()
