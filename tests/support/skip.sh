# skip REASON: ends a test, which sources this, and reports the reason as GoogleTest does. So
# `./dev test` lists it: an exit code alone would count as passed.
skip() {
  local test=${TEST_TARGET:-test} reason=${1//[<>&\"]/ }
  test=${test##*:}
  echo "skipped: $reason"
  cat >"${XML_OUTPUT_FILE:-/dev/null}" <<XML
<testsuites><testsuite name="$test" tests="1"><testcase name="All" classname="$test"
result="skipped"><skipped message="$test $reason"/></testcase></testsuite></testsuites>
XML
  exit 0
}
