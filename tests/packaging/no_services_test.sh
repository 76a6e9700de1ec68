#!/bin/bash
# The packages that ./dev installs bring services, of which it starts none, neither while it installs
# them nor at the next boot: with an apt-get that asks the policy as Debian's does, and a package
# with a service.
set -euo pipefail
work=$(mktemp -d /tmp/ferry-services-XXXXXX)
trap 'rm -rf "$work"' EXIT
export PATH=$work/bin:$PATH WORK=$work
mkdir "$work/bin"
cat >"$work/bin/apt-get" <<'SH'
#!/bin/bash
echo "$@" >>"$WORK/apt"
[[ $1 == install ]] || exit 0
code=0
[[ ! -e $WORK/policy ]] || "$WORK/policy" prometheus start || code=$?
[[ $code == 101 ]] || echo started >>"$WORK/services"
exit "$(cat "$WORK/result")"
SH
cat >"$work/bin/dpkg-query" <<'SH'
#!/bin/bash
[[ $1 == -L ]] || exit 1  # nothing is installed
printf '%s\n' /. /lib/systemd/system /lib/systemd/system/prometheus.service /usr/bin/prometheus \
  /usr/lib/systemd/system/prometheus-rules.service  # where packages of Debian 13 have them
SH
printf '#!/bin/bash\nprintf "$2:\\n  Candidate: 1\\n"\n' >"$work/bin/apt-cache"
cat >"$work/bin/systemctl" <<'SH'
#!/bin/bash
echo "$@" >>"$WORK/systemctl"
exit 1
SH
printf '#!/bin/bash\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work"/bin/*
# The functions alone: the script itself would begin to build.
for function in die install_without_services first_that is_debian is_installed is_offered need; do
  eval "$(sed -n "/^$function() {.*}\$/p; /^$function() {\$/,/^}\$/p" dev)"
done
policy=$work/policy

# installs RESULT: as ./dev does, with an apt-get that ends with this code.
installs() {
  rm -f "$work"/apt "$work"/services "$work"/systemctl
  echo "$1" >"$work/result"
  (need prometheus) >"$work/said" 2>&1
}
expect() {
  [[ $2 == $3 ]] || {
    echo "FAILED: $1: \"$2\", not \"$3\"; it said: $(cat "$work/said")"
    exit 1
  }
}
services() { cat "$work/services" 2>/dev/null || true; }

installs 0 || expect "the installation" failed done
expect "what was installed" "$(tail -n 1 "$work/apt")" "install *prometheus"
expect "services" "$(services)" ""
expect "at the next boot" "$(xargs <"$work/systemctl")" \
  "disable -q prometheus.service disable -q prometheus-rules.service"
[[ ! -e $policy ]] || expect "the policy" "is left behind" gone

installs 100 && expect "an installation that fails" done failed
expect "what it says" "$(cat "$work/said")" "*these could not be installed*"
[[ ! -e $policy ]] || expect "the policy, then" "is left behind" gone

# One that another ./dev has left when it was killed.
printf '#!/bin/sh\n# of Ferry'"'"'s ./dev\nexit 0\n' >"$policy"
chmod +x "$policy"
installs 0 || expect "the next installation" failed done
expect "services, then" "$(services)" ""
[[ ! -e $policy ]] || expect "a policy that was left" "is left behind" gone

# The administrator's own stays, and decides.
printf '#!/bin/sh\nexit 0\n' >"$policy"
chmod +x "$policy"
installs 0 || expect "an installation with a policy" failed done
expect "services by the administrator's policy" "$(services)" started
[[ -e $policy ]] || expect "the administrator's policy" gone "left alone"
echo passed
