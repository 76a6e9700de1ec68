#!/usr/bin/env python3
"""orders.py BUILT: looks into the code of an arm64 build for orders of memory that x86 has for nothing.

No test on x86 shows that one is missing, and an emulator there does not either: it runs on x86's order. So this reads what the
compiler has made of each place where Ferry relies on such an order. BUILT is Bazel's out/bin of --config=arm64.
"""

import re
import subprocess
import sys

FULL_FENCE = r"\bdmb\s+ish$"
LOAD_FENCE = r"\bdmb\s+ishld$"
EXCHANGE = r"\bbl\s.*__aarch64_(swp|ldadd)\d_acq_rel|\b(swpal|ldaddal)\b|\bstlxr\b"
RELEASE = r"\bstlrb?\b"

# Object, function (a pattern for its demangled name), and what must stand in it, in this order. Between an exchange and its fence
# lie a few instructions at most.
PLACES = [
    ("shm/_objs/shm/lane.pic.o", r"LaneProducer::AskForRoom\(", [EXCHANGE, FULL_FENCE]),
    ("shm/_objs/shm/call_board.pic.o", r"CallBoard::SetBegin\(", [RELEASE]),
    ("shm/_objs/shm/call_board.pic.o", r"CallBoard::SetMissing\(", [RELEASE]),
    ("shm/_objs/shm/call_board.pic.o", r"CallBoard::End\(", [RELEASE]),
    ("shm/_objs/words/pair_move.pic.o", r"shm::BeginToSleep\(", [EXCHANGE, FULL_FENCE]),
    ("client/links/_objs/links/link_thread.pic.o", r"LinkThread::Become\(", [EXCHANGE, FULL_FENCE]),
    ("client/rma/_objs/rma/remote_operations.pic.o", r"Passage::Enter\(", [EXCHANGE, FULL_FENCE]),
    ("coll/board/_objs/board/board.pic.o", r"Board::SleepUntil\(", [EXCHANGE, FULL_FENCE]),
    ("mpi/partitioned/_objs/partitioned/side.pic.o", r"Side::WaitUntil\(", [RELEASE, FULL_FENCE]),
    ("mpi/rma/_objs/rma/attached.pic.o", None, [LOAD_FENCE]),
]


def functions(path):
    """By demangled name, the instructions of each function of an object."""
    text = subprocess.run(
        ["aarch64-linux-gnu-objdump", "-dCr", "--no-show-raw-insn", path], check=True, capture_output=True, text=True
    ).stdout
    found = {}
    name = ""
    for line in text.splitlines():
        head = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if head:
            name = head.group(1)
            found[name] = []
        elif name and "\t" in line:
            found[name].append(line.strip())
    return found


def has(instructions, patterns):
    """Whether lines with these patterns follow each other."""
    rest = iter(instructions)
    return all(any(re.search(pattern, line) for line in rest) for pattern in patterns)


def main():
    built = sys.argv[1]
    missing = []
    for path, function, patterns in PLACES:
        code = functions(f"{built}/{path}")
        chosen = [lines for name, lines in code.items() if function is None or re.search(function, name)]
        if not chosen:
            missing.append(f"{path}: there is no function {function}")
        elif not any(has(lines, patterns) for lines in chosen):
            missing.append(f"{path}: {function or 'each function'} lacks {' and then '.join(patterns)}")
    for line in missing:
        print("orders.py:", line)
    print(f"orders of memory: {len(PLACES) - len(missing)} of {len(PLACES)} places are right")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
