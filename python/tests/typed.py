"""A program that mypy checks."""

from typing import Dict, List, Tuple

import volary


class Texts(volary.ReadOnly):
    texts: Dict[str, bytes] = {"a": b"1"}

    def list(self, dir: str) -> Dict[str, volary.File]:
        return {name: volary.File(len(text)) for name, text in self.texts.items()}

    def read(self, file: str, offset: int, length: int) -> bytes:
        return self.texts[file][offset : offset + length]


def sizes(image: str) -> List[Tuple[str, int]]:
    with volary.open(image, layers=["casefold"], memory="16M") as vol:
        return [(e.path, e.stat.size) for e in vol.walk() if e.stat is not None]


def use(image: str) -> int:
    volary.mkfs(image, "fat32", "64M", label="X")
    result: volary.CheckResult = volary.check(image, repair=True)
    total = sum(len(data) for _, _, data in volary.bulk(image, shuffle=1, include=["*.txt"]))
    try:
        with volary.serve(volary.volume(Texts()), nfs=True) as server:
            print(server.nfs)
    except volary.Busy as e:
        print(e.kind, e.errno)
    return total + result.found
