#!/usr/bin/env bash
# Ranks of a real torchrun: on one host, and on two, which are network namespaces of this machine.
# PyTorch is 3 GB with its libraries, so nothing is downloaded: TORCHRUN=FILE names the torchrun of
# an environment (--test_env=TORCHRUN=...), else the PATH's is taken.
set -euo pipefail
source tests/support/skip.sh

readonly torchrun=${TORCHRUN:-$(command -v torchrun || true)}
readonly secret=0123456789abcdef0123456789abcdef

fail() {
  echo "FAILED: $*"
  exit 1
}

# ---- Outside -------------------------------------------------------------------------------------

if [[ ${1:-} != inside ]]; then
  [[ -x $torchrun ]] ||
    skip "there is no torchrun: pip install torch, and set TORCHRUN to the file"
  "$torchrun" --help > "${TEST_TMPDIR:?}/log" 2>&1 ||
    skip "$torchrun cannot run: $(tail -n 1 "$TEST_TMPDIR/log")"
  [[ $EUID == 0 ]] || skip "namespaces need root"
  code=0
  unshare --mount --pid --fork --kill-child bash "$0" inside || code=$?
  exit $code
fi

# ---- Two hosts -----------------------------------------------------------------------------------

readonly log=$TEST_TMPDIR/log
mount -t proc proc /proc
mount -t tmpfs run /run
mkdir -p /run/netns
printf '127.0.0.1 localhost\n10.78.1.1 t1\n10.78.1.2 t2\n' > "$TEST_TMPDIR/hosts"
mount --bind "$TEST_TMPDIR/hosts" /etc/hosts
for host in t1 t2; do
  ip netns add $host || skip "no network namespaces here"
done
ip -n t1 link add eth0 type veth peer name eth0 netns t2
for number in 1 2; do
  ip -n t$number addr add 10.78.1.$number/24 dev eth0
  ip -n t$number link set eth0 up
  ip -n t$number link set lo up
done
on() {  # HOST COMMAND...
  local host=$1
  shift
  ip netns exec "$host" unshare --uts sh -c "hostname $host; exec \"\$@\"" sh "$@"
}

# A loaded machine takes long for everything.
export FERRY_ATTACH_TIMEOUT_MS=60000 FERRY_PEER_TIMEOUT_MS=120000 OMP_NUM_THREADS=1
export PATH=$PWD/tools/ferryrun:$PATH  # where libferry looks for what starts a daemon

lines() {  # N WORDS: so many lines have the words
  [[ $(grep -c -- "$2" "$log") == "$1" ]] || fail "not $1 lines with \"$2\" in: $(cat "$log")"
}

echo "--- one host"
on t1 "$torchrun" --nproc-per-node 4 --no-python examples/mpi_hello/mpi_hello > "$log" 2>&1 ||
  fail "$(cat "$log")"
for rank in 0 1 2 3; do
  lines 1 "rank $rank of 4"
done

echo "--- a Python rank that is in a process group of torch.distributed, too"
on t1 "$torchrun" --nproc-per-node 3 tests/e2e/torchrun_rank.py mpi/libmpi_abi.so.1 > "$log" 2>&1 ||
  fail "$(cat "$log")"
for rank in 0 1 2; do
  lines 1 "python rank $rank of 3"
done

echo "--- a rank that fails is started anew, with all the others"
# shellcheck disable=SC2016  # the ranks' variables
on t1 "$torchrun" --nproc-per-node 3 --max-restarts 1 --no-python sh -c '
  if [ $TORCHELASTIC_RESTART_COUNT = 0 ] && [ $RANK = 1 ]; then exit 3; fi
  exec examples/mpi_hello/mpi_hello' > "$log" 2>&1 || fail "$(cat "$log")"
for rank in 0 1 2; do
  lines 1 "rank $rank of 3"
done

both() {  # COMMAND...: an agent of torchrun on each host
  local code=0
  on t2 "$torchrun" --nnodes 2 --nproc-per-node 2 --rdzv-id job --rdzv-backend c10d \
    --rdzv-endpoint t1:29400 --local-addr t2 "$@" > "$log.2" 2>&1 &
  on t1 "$torchrun" --nnodes 2 --nproc-per-node 2 --rdzv-id job --rdzv-backend c10d \
    --rdzv-endpoint t1:29400 --local-addr t1 "$@" > "$log.1" 2>&1 || code=$?
  wait $! || code=$?
  cat "$log.1" "$log.2" > "$log"
  return $code
}

echo "--- two hosts without a secret"
if both --no-python examples/mpi_hello/mpi_hello; then
  fail "they met: $(cat "$log")"
fi
grep -q "FERRY_JOB_SECRET_FILE=" "$log" || fail "no word of the secret in: $(cat "$log")"

echo "--- two hosts with a secret, and a ferryd on each"
for number in 1 2; do
  folder=$TEST_TMPDIR/t$number address=10.78.1.$number
  certificates=$TEST_TMPDIR/certificates
  tools/ferryctl/ferryctl certs "$certificates" --node "t$number,$address" > "$log" 2>&1 ||
    fail "ferryctl certs: $(cat "$log")"
  on t$number daemon/ferryd --run_directory "$folder" --fabric_address $address \
    --control_address $address --tls_ca_file "$certificates/ca.pem" \
    --tls_cert_file "$certificates/t$number.pem" --tls_key_file "$certificates/t$number.key" \
    > "$folder.log" 2>&1 &
  until [[ -S $folder/attach.sock ]]; do
    kill -0 $! 2> /dev/null || fail "ferryd: $(cat "$folder.log")"
    sleep 0.1
  done
done
# shellcheck disable=SC2016  # the ranks' variables
FERRY_JOB_SECRET=$secret both --no-python sh -c 'FERRY_RUN_DIRECTORY=$TEST_TMPDIR/$(hostname) \
  exec examples/mpi_hello/mpi_hello' || fail "$(cat "$log")"
for rank in 0 1 2 3; do
  lines 1 "rank $rank of 4"
done
