"""Ranges of many files: volary's cat_ranges beside dissect on the same image.

    python bench/cat_ranges.py [--files 2000] [--rounds 5]

Both open the image anew in each round, read the same ranges, and are compared byte for byte. Printed are medians.
"""

import argparse
import random
import statistics
import tempfile
import time

import volary


def dissect_ffs(image, wanted):
    from dissect.ffs import FFS

    with open(image, "rb") as file:
        fs = FFS(file)
        return [read(fs.get(path).open(), start, end) for path, start, end in wanted]


def dissect_fat(image, wanted):
    from dissect.fat import FATFS

    with open(image, "rb") as file:
        fs = FATFS(file)
        return [read(fs.get(path).open(), start, end) for path, start, end in wanted]


def read(file, start, end):
    file.seek(start)
    return file.read(end - start)


def ours(image, wanted):
    with volary.open(image) as vol:
        paths, starts, ends = zip(*wanted)
        return vol.cat_ranges(paths, starts, ends)


def make(image, kind, files):
    chance = random.Random(1)
    volary.mkfs(image, kind, "512M")
    wanted = []
    with volary.open(image, write=True) as vol:
        for number in range(files):
            if number % 100 == 0:
                vol.mkdir(f"/d{number // 100}")
            path, size = f"/d{number // 100}/file{number}.bin", chance.randrange(1, 64 << 10)
            vol.write(path, chance.randbytes(size))
            for _ in range(3):
                start = chance.randrange(size)
                wanted.append((path, start, min(size, start + chance.randrange(1, 8 << 10))))
    chance.shuffle(wanted)
    return wanted


def timed(work, *arguments):
    begin = time.perf_counter()
    found = work(*arguments)
    return time.perf_counter() - begin, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    how = parser.parse_args()
    for kind, rival in (("fat32", dissect_fat), ("ffs2", dissect_ffs)):
        with tempfile.TemporaryDirectory() as folder:
            image = f"{folder}/disk.img"
            wanted = make(image, kind, how.files)
            times = {ours: [], rival: []}
            for _ in range(how.rounds):
                found = []
                for work, all_times in times.items():
                    seconds, bytes_found = timed(work, image, wanted)
                    all_times.append(seconds)
                    found.append(bytes_found)
                assert found[0] == found[1], "they do not read the same"
            mine, theirs = (statistics.median(all_times) for all_times in times.values())
            print(
                f"{kind}: {len(wanted)} ranges of {how.files} files: volary {mine * 1000:.1f} ms, "
                f"{rival.__name__.replace('_', '.')} {theirs * 1000:.1f} ms, ratio {theirs / mine:.1f}"
            )


if __name__ == "__main__":
    main()
