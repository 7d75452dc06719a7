"""Run cases one after another, going on where the same code was stopped; ``--case 123`` runs one and shows it."""

import argparse
import json
import logging
from hashlib import sha256
from pathlib import Path

from tests.fuzz.cases import case
from tests.fuzz.judged import PACKAGE, outcome


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--case", type=int, nargs="+", help="run these alone, and show them")
    parser.add_argument("--cases", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    asked = parser.parse_args()
    for number in asked.case or ():
        print(case(number))
        print(outcome(number))
    if not asked.case:
        logging.getLogger("bayes_sparse").setLevel(logging.ERROR)
        _run(range(asked.first, asked.first + asked.cases))


def _run(numbers):
    place = Path("fuzz_output") / f"{_code()}.jsonl"
    place.parent.mkdir(exist_ok=True)
    lines = place.read_text().splitlines() if place.exists() else []
    done = {one["case"]: one for one in map(json.loads, lines)}
    for number in numbers:
        if number not in done:
            done[number] = outcome(number)
            with place.open("a") as file:
                file.write(json.dumps(done[number]) + "\n")
            if done[number]["wrong"]:
                print(f"{number}: {done[number]['wrong']}", flush=True)
    ours = [done[number] for number in numbers]
    fitted, bad = sum(one["end"] != "refused" for one in ours), [one["case"] for one in ours if one["wrong"]]
    seconds, slowest = sum(one["seconds"] for one in ours), max(ours, key=lambda one: one["seconds"])
    print(f"{len(ours)} cases, {fitted} fitted and the others refused; {len(bad)} with something wrong: {bad[:20]}")
    print(f"{seconds:.0f} s of the processor, most for case {slowest['case']}: {slowest['seconds']:.1f} s")


def _code():
    """A name for the code that the answers are of: after a change all cases are open again."""
    files = sorted([*Path(PACKAGE).rglob("*.py"), *Path(__file__).parent.glob("*.py")])
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


if __name__ == "__main__":
    main()
