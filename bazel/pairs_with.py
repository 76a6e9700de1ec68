"""Comments "Pairs with X::Y" whose X or Y is nowhere in the code: pairs_with.py. Prints a line for each."""
import re
import subprocess

COMMENT = re.compile(r"[Pp]airs? with (?:the )?([A-Z]\w*)(?:::([A-Z]\w*))?")
EXAMPLE = "shm/atomic.h"  # its comment says how such comments are written


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def main():
    paths = subprocess.run(["git", "ls-files", "*.h", "*.hpp", "*.cc", "*.c"], stdout=subprocess.PIPE, text=True, check=True)
    texts = {path: text_of(path) for path in paths.stdout.splitlines()}
    code = "\n".join(re.sub(r"//[^\n]*", "", text) for text in texts.values())
    words = set(re.findall(r"\w+", code))
    called = set(re.findall(r"\b(\w+)\s*[({<;=]", code))
    for path, text in texts.items():
        for owner, name in COMMENT.findall(re.sub(r"\n\s*// ?", " ", text)):
            if path != EXAMPLE and (owner not in words or (name and name not in called)):
                print("%s: pairs with %s, which is nowhere" % (path, "::".join(filter(None, (owner, name)))))


if __name__ == "__main__":
    main()
