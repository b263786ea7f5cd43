"""Command lines made of what tests have at hand: interpreters, paths, numbers, words."""
import os


def words(*command):
    return [os.fspath(part) if isinstance(part, os.PathLike) else str(part) for part in command]
