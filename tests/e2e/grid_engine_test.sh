#!/usr/bin/env bash
# ferryrun in jobs of a real Grid Engine with two hosts: network namespaces of this machine, which
# have their own names. Everything runs in namespaces of mounts and processes that end with the
# test, so nothing is installed and no daemon stays: where the packages are not installed, they are
# downloaded and laid over /usr there.
set -euo pipefail
source tests/support/skip.sh

readonly packages=(gridengine-common gridengine-client gridengine-exec gridengine-master)
readonly libraries=/usr/lib/gridengine

# ---- Outside -------------------------------------------------------------------------------------

if [[ ${1:-} != inside ]]; then
  [[ $EUID == 0 ]] || skip "namespaces need root"
  for program in unshare ip dpkg-deb apt-get; do
    command -v $program > /dev/null || skip "there is no $program"
  done
  folder=$(mktemp -d "${TEST_TMPDIR:?}/ge.XXXX")
  if [[ ! -x $libraries/sge_qmaster ]]; then
    (cd "$folder" && apt-get download "${packages[@]}") > "$folder/log" 2>&1 ||
      skip "Grid Engine is not installed, and cannot be downloaded: $(tail -n 1 "$folder/log")"
    for package in "$folder"/*.deb; do
      dpkg-deb -x "$package" "$folder/tree"
    done
  fi
  # Without the new process namespace's first process all others there end.
  code=0
  unshare --mount --pid --fork --kill-child bash "$0" inside "$folder" "$PWD" || code=$?
  exit $code
fi

# ---- The cell ------------------------------------------------------------------------------------

readonly folder=$2 root=$3
if [[ -d $folder/tree ]]; then
  mount -t overlay -o "lowerdir=$folder/tree/usr:/usr" overlay /usr ||
    skip "no overlay can be mounted here"
fi
mount -t proc proc /proc
mount -t tmpfs run /run
mkdir -p /run/netns
printf '127.0.0.1 localhost\n10.77.1.1 ge1\n10.77.1.2 ge2\n' > "$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts
for host in ge1 ge2; do
  ip netns add $host || skip "no network namespaces here"
done
ip -n ge1 link add eth0 type veth peer name eth0 netns ge2
for number in 1 2; do
  ip -n ge$number addr add 10.77.1.$number/24 dev eth0
  ip -n ge$number link set eth0 up
  ip -n ge$number link set lo up
done

export SGE_ROOT=$folder/cell SGE_CELL=default SGE_QMASTER_PORT=16444 SGE_EXECD_PORT=16445
readonly common=$SGE_ROOT/default/common spool=$SGE_ROOT/spool
mkdir -p "$common" "$spool/qmaster/job_scripts" "$spool/execd" "$SGE_ROOT"/{bin,utilbin}
ln -s /usr/share/gridengine/util "$SGE_ROOT/util"
for place in bin utilbin; do
  ln -s $libraries "$SGE_ROOT/$place/$(/usr/share/gridengine/util/arch)"
done

on() {  # HOST COMMAND...
  local host=$1
  shift
  ip netns exec "$host" unshare --uts sh -c "hostname $host; exec \"\$@\"" sh "$@"
}
master() { on ge1 timeout 60 "$@"; }
await() {  # WHAT COMMAND...: until it succeeds
  local what=$1
  shift
  local end=$((SECONDS + 240))  # tests/support/patience.h
  while ((SECONDS < end)); do
    if "$@" > /dev/null 2>&1; then
      return
    fi
    sleep 0.1
  done
  echo "FAIL: $what did not come" >&2
  exit 1
}

cat > "$common/bootstrap" << END
admin_user              none
default_domain          none
ignore_fqdn             false
spooling_method         classic
spooling_lib            libspoolc
spooling_params         $common;$spool/qmaster
binary_path             $libraries
qmaster_spool_dir       $spool/qmaster
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
END
echo ge1 > "$common/act_qmaster"
sed -e "s#^execd_spool_dir .*#execd_spool_dir $spool/execd#" \
  -e 's#^\(min_[ug]id\).*#\1 0#' -e 's#^mailer.*#mailer /bin/true#' \
  -e 's#^gid_range.*#gid_range 20000-20100#' \
  -e 's#^load_report_time.*#load_report_time 00:00:01#' \
  /usr/share/gridengine/default-configuration > "$SGE_ROOT/configuration"
master $libraries/spoolinit classic libspoolc "$common;$spool/qmaster" init
master $libraries/spooldefaults configuration "$SGE_ROOT/configuration"
master $libraries/spooldefaults complexes /usr/share/gridengine/util/resources/centry
master $libraries/spooldefaults usersets /usr/share/gridengine/util/resources/usersets
master $libraries/spooldefaults managers root
on ge1 $libraries/sge_qmaster
await "the master" master qconf -sh
for host in ge1 ge2; do
  master qconf -as $host
  master qconf -ah $host || true  # the master's own is there
done
master qconf -ssconf | sed -e 's#^schedule_interval.*#schedule_interval 0:0:1#' \
  -e 's#^flush_\(submit\|finish\)_sec.*#flush_\1_sec 1#' > "$SGE_ROOT/schedule"
master qconf -Msconf "$SGE_ROOT/schedule"
cat > "$SGE_ROOT/environment" << 'END'
pe_name            ferry
slots              999
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    $round_robin
control_slaves     TRUE
job_is_first_task  FALSE
urgency_slots      min
accounting_summary FALSE
qsort_args         NONE
END
master qconf -Ap "$SGE_ROOT/environment"
{
  cat << 'END'
qname                 all.q
hostlist              ge1 ge2
seq_no                0
load_thresholds       NONE
suspend_thresholds    NONE
nsuspend              1
suspend_interval      00:05:00
priority              0
min_cpu_interval      00:05:00
processors            UNDEFINED
qtype                 BATCH INTERACTIVE
pe_list               ferry
rerun                 FALSE
slots                 4
tmpdir                /tmp
shell                 /bin/sh
shell_start_mode      unix_behavior
notify                00:00:60
initial_state         default
END
  for name in ckpt_list prolog epilog starter_method suspend_method resume_method \
    terminate_method owner_list user_lists xuser_lists subordinate_list complex_values projects \
    xprojects calendar; do
    echo "$name NONE"
  done
  for name in rt cpu fsize data stack core rss vmem; do
    echo "s_$name INFINITY"
    echo "h_$name INFINITY"
  done
} > "$SGE_ROOT/queue"
master qconf -Aq "$SGE_ROOT/queue"
on ge1 $libraries/sge_execd
on ge2 $libraries/sge_execd
both_serve() { [[ $(master qstat -f | grep -c 'lx-.* $') == 2 ]]; }
await "both hosts" both_serve

# ---- Jobs ----------------------------------------------------------------------------------------

# Runs a script as a job of four slots, two on each host, and prints its output.
job() {
  local script=$folder/job.sh output=$folder/output
  {
    echo '#!/bin/bash'
    echo "cd $root"
    echo "export DAEMON=$root/daemon/ferryd"
    # A loaded machine takes long for everything.
    echo 'export FERRY_PEER_TIMEOUT_MS=120000 FERRY_ATTACH_TIMEOUT_MS=60000'
    echo 'run() { tools/ferryrun/ferryrun --network eth0 --ferryd $DAEMON "$@"; }'
    cat
    echo 'echo "end of job"'
  } > "$script"
  rm -f "$output"
  master qsub -cwd -V -S /bin/bash -j y -o "$output" -pe ferry 4 "$script" > /dev/null
  await "the job's end" grep -q '^end of job' "$output"
  cat "$output"
}
expect() {  # OUTPUT WORDS...
  local output=$1
  shift
  for words in "$@"; do
    if [[ $output != *"$words"* ]]; then
      printf 'FAIL: no "%s" in\n%s\n' "$words" "$output" >&2
      exit 1
    fi
  done
}

echo "--- hosts and ranks come from the job, and qrsh reaches the other host"
output=$(job << 'END'
run -v examples/hello/hello
run -l sh -c 'echo "$(hostname)  two spaces and a \"quote\" of $FERRY_SIZE"'
END
)
expect "$output" "2 hosts of Grid Engine's allocation (PE_HOSTFILE): ge1:2, ge2:2" \
  "rank 2 on node 1, host ge2" "rank 0 of 4: rank 3 says hello" "rank 3 of 4: rank 2 says hello" \
  '[0] ge1  two spaces and a "quote" of 4' '[3] ge2  two spaces and a "quote" of 4'

echo "--- the streams of a rank there carry every byte"
output=$(job << 'END'
head -c 3000000 /dev/urandom > $TMPDIR/bytes
run -host ge2 -n 1 --no-label cat < $TMPDIR/bytes | cmp - $TMPDIR/bytes && echo "the same"
END
)
expect "$output" "the same"

echo "--- exit codes and signals"
output=$(job << 'END'
run sh -c 'exit $((FERRY_RANK == 3 ? 7 : 0))'; echo "code $?"
run -host ge2 -n 1 sh -c 'kill -9 $$'; echo "killed $?"
run -host ge3 -n 1 true; echo "beyond $?"
END
)
expect "$output" "code 7" "killed 137" "ferryrun: -host ge3: 2 hosts of Grid Engine's" "beyond 2"

echo "--- a job that is deleted leaves nothing on either host"
cat > "$folder/long.sh" << END
#!/bin/bash
cd $root
exec tools/ferryrun/ferryrun --network eth0 --ferryd $root/daemon/ferryd sleep 100001
END
id=$(master qsub -terse -cwd -V -S /bin/bash -j y -o "$folder/long" -pe ferry 4 "$folder/long.sh")
four_sleep() { [[ $(pgrep -cf '^sleep 100001') == 4 ]]; }
none_left() { ! pgrep -f 'sleep 100001|ferryrun|ferryd|ferry-guard'; }
await "all ranks" four_sleep
master qdel "$id"
await "the end of all processes of the job" none_left

echo "--- without a launcher"
output=$(job << 'END'
run --launcher none examples/hello/hello; echo "none $?"
END
)
expect "$output" "launcher is none" "none 1"
echo PASS
