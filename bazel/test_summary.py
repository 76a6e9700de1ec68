"""Sums up test runs: test_summary.py NAME=FILE...

Each FILE is what one `bazel test --build_event_json_file=FILE` wrote. Names the skipped tests by
their reasons, then every failure with the first of what it says, then prints `N passed, N failed`
(and `, N skipped`) over all cases of all files. A test that was not built or not run, or died without
a verdict, and any other target that was not built, count as failed. The line before says where the
time went, if Bazel was told `--profile=FILE.profile.gz`, too; what `bazel build` wrote of the same
into FILE.build is added. Exits with 1 if any failed.
"""

import collections
import gzip
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


LONGEST_WORDS = 300  # of what a failure says


class Tally:
    def __init__(self):
        self.passed, self.failures = 0, []
        self.skips = {}  # by test and reason: the cases

    @property
    def failed(self):
        return len(self.failures)

    @property
    def skipped(self):
        return sum(len(cases) for cases in self.skips.values())

    def fail(self, what, words=""):
        self.failures.append(what + (": " + words if words else ""))

    def skip(self, test, case, reason):
        self.skips.setdefault((test, reason or "no reason given"), []).append(case)

    def print(self):
        for (test, reason), cases in self.skips.items():
            more = " and %d more" % (len(cases) - 1) if len(cases) > 1 else ""
            print("SKIPPED %s %s%s: %s" % (test, cases[0], more, reason))
        for failure in self.failures:  # last, where they are looked for
            print("FAILED  " + failure)


def read_events(path):
    """The events of `path` as (kind, id, event); none if Bazel wrote no file."""
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                event = json.loads(line)
                (kind, event_id), = event["id"].items()
                yield kind, event_id, event
    except FileNotFoundError:
        return


def excluded_tags(options):
    """The tags that --test_tag_filters=-tag,... leaves out."""
    prefix = "--test_tag_filters="
    filters = [o[len(prefix):] for o in options if o.startswith(prefix)]
    return {tag[1:] for tag in (filters or [""])[-1].split(",") if tag.startswith("-")}


def count_cases(label, uris, tally):
    """Adds up the cases in the test.xml files; returns how many failed."""
    failed_before = tally.failed
    for uri in uris:
        root = ElementTree.parse(urllib.parse.unquote(urllib.parse.urlparse(uri).path))
        for case in root.iter("testcase"):
            name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
            skipped = case.find("skipped")
            failures = [f for kind in ("failure", "error") for f in case.iter(kind)]
            if failures:
                words = " ".join((failures[0].get("message") or "").split())
                tally.fail(label + " " + name, words[:LONGEST_WORDS])
            elif case.get("status") == "notrun":
                tally.skip(label, name, "disabled")
            elif skipped is not None or case.get("result") == "skipped":
                reason = "" if skipped is None else skipped.get("message", "")
                tally.skip(label, name, " ".join(reason.split()[1:]))  # without "file:line"
            else:
                tally.passed += 1
    return tally.failed - failed_before


def count_run(name, path, tally):
    tests, verdicts, uris, not_built = set(), {}, {}, {}
    excluded, exit_code = set(), None
    failed_before = tally.failed
    for kind, event_id, event in read_events(path):
        label = event_id.get("label") if isinstance(event_id, dict) else None
        if kind == "optionsParsed":
            excluded = excluded_tags(event["optionsParsed"].get("cmdLine", []))
        elif kind == "targetConfigured" and "configured" in event:
            target = event["configured"]
            if target["targetKind"].endswith("_test rule"):
                if not excluded & set(target.get("tag", [])):
                    tests.add(label)
        elif kind == "targetCompleted" and not event.get("completed", {}).get("success"):
            not_built[label] = "was not built"
        elif kind == "pattern" and "aborted" in event:
            not_built[" ".join(event_id["pattern"])] = event["aborted"].get("description", "")
        elif kind == "testResult" and "testResult" in event:
            files = event["testResult"].get("testActionOutput", [])
            uris.setdefault(label, []).extend(
                f["uri"] for f in files if f["name"] == "test.xml")
        elif kind == "testSummary" and "testSummary" in event:
            verdicts[label] = event["testSummary"]["overallStatus"]
        elif kind == "buildFinished":
            exit_code = event["finished"]["exitCode"].get("code", 0)

    for label, reason in sorted(not_built.items()):
        tally.fail(name + label + " " + reason)
    for label in sorted(tests - set(not_built)):
        verdict = verdicts.get(label, "was not run")
        failures = count_cases(name + label, uris.get(label, []), tally)
        if verdict != "PASSED" and failures == 0:  # killed, timed out, or a sanitizer's report
            tally.fail(name + label + " " + verdict)
    if exit_code != 0 and tally.failed == failed_before:
        tally.fail(name + ("Bazel did not run" if exit_code is None else
                           "Bazel ended with code %d" % exit_code))


# What Bazel's words for an action begin with.
ACTIONS = {"Precompiling": "compiling", "Compiling": "compiling", "Linking": "linking",
           "Testing": "running"}


def duration_s(path):
    """From Bazel's start to its end; None if it does not say."""
    begin = end = None
    for kind, _, event in read_events(path):
        if kind == "started":
            begin = int(event["started"].get("startTimeMillis", 0))
        elif kind == "buildFinished":
            end = int(event["finished"].get("finishTimeMillis", 0))
    return (end - begin) / 1000 if begin and end else None


def parts_of_time(paths):
    """Of the time that actions took, which part each kind had: (kind, percent), largest first."""
    times = collections.Counter()
    for path in paths:
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
        except (FileNotFoundError, ValueError, EOFError):
            continue
        for event in events:
            if event.get("cat") == "action processing":
                times[ACTIONS.get(event["name"].split(" ")[0], "other")] += event.get("dur", 0)
    total = sum(times.values()) or 1
    return [(kind, 100 * time / total) for kind, time in times.most_common()]


def where_time_went(runs):
    """A line for runs (name, path); empty if none says how long it took."""
    texts, total = [], 0
    for name, path in runs:
        files = [path + ".build", path]
        times = [time for time in map(duration_s, files) if time is not None]
        if not times:
            continue
        parts = ", ".join("%s %.0f %%" % part
                          for part in parts_of_time(file + ".profile.gz" for file in files)
                          if part[1] >= 0.5)
        texts.append("%s %.1f min%s" % (name, sum(times) / 60, " (%s)" % parts if parts else ""))
        total += sum(times)
    return "time: %s; %.1f min in all" % ("; ".join(texts), total / 60) if texts else ""


def main():
    tally = Tally()
    runs = []
    for argument in sys.argv[1:]:
        name, _, path = argument.rpartition("=")
        count_run(name + ": ", path, tally)
        runs.append((name, path))
    tally.print()
    if time := where_time_went(runs):
        print(time)
    skipped = ", %d skipped" % tally.skipped if tally.skipped else ""
    print("%d passed, %d failed%s" % (tally.passed, tally.failed, skipped))
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
