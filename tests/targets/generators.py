"""Generators of all kinds, which do little between two steps: a profiler mostly finds them just
called or about to yield. Their functions are called g_SOMETHING.

    generators.py SECONDS
"""
import asyncio
import sys
import time


def g_numbers(count):
    yield from range(count)


def g_loop(count):
    for number in range(count):
        yield number


def g_nested(count, depth):
    if depth:
        yield from g_nested(count, depth - 1)
    else:
        for number in g_loop(count):
            yield number


async def g_answer(number):
    return number


async def g_async_numbers(count):
    for number in range(count):
        yield await g_answer(number)


async def g_awaits(count):
    async for number in g_async_numbers(count):
        await g_answer(number)


def plain(count):
    for _ in g_nested(count, 5):
        pass
    return sum(map(abs, g_numbers(count))) + sum(map(abs, g_loop(count)))


async def g_task(end):
    while time.process_time() < end:
        await g_awaits(100)
        plain(200)
        await asyncio.sleep(0)


async def g_tasks(end):
    await asyncio.gather(g_task(end), g_task(end))


def main(seconds):
    asyncio.run(g_tasks(time.process_time() + seconds))


main(float(sys.argv[1]))
