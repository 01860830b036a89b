"""python -m tests.fuzz TARGET [options of libFuzzer]: one target, coverage-guided, in this process.

Run it where no walker is compiled, or their branches are not seen. Ends with status 0 when the time
is over, and with libFuzzer's own when something was found; the input is then in the folder of
`-artifact_prefix`.
"""

import sys

import atheris

with atheris.instrument_imports(include=["protocol", "storage", "broker", "config"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
