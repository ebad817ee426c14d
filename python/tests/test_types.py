"""What type checkers say."""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


def test_an_example_and_the_package_are_typed():
    pytest.importorskip("mypy")
    package = HERE.parent / "volary"
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.10"]
    checked = subprocess.run(
        [*command, str(HERE / "typed.py"), str(package)],
        capture_output=True,
        text=True,
        cwd=HERE.parent,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_mistakes_are_found(tmp_path):
    pytest.importorskip("mypy")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import volary\n"
        "size: str = volary.open('a').stat('/b').size\n"
        "volary.open('a', writ=True)\n"
        "volary.check('a').findings[0].nothing\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", str(wrong)]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)
    assert "Found 3 errors" in checked.stdout, checked.stdout + checked.stderr
