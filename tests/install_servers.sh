#!/bin/sh
# The servers that tests use and that come from Debian or Ubuntu: installed where this may be done, and never a
# failure. Without them their tests are skipped with a line that says what to install; in CI that is a failure.
set -u

wanted=""
command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ] || wanted="$wanted pgbouncer"
[ -x /usr/lib/postgresql/15/bin/postgres ] || wanted="$wanted postgresql-15"
[ -d /usr/lib/rabbitmq/lib ] || wanted="$wanted rabbitmq-server"

[ -z "$wanted" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed:$wanted; some tests will be skipped. As root: apt-get install$wanted"
    exit 0
fi

# A service that a package would start is not what the tests want: they start their own, on loopback.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy" && chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq >/dev/null 2>&1
for package in $wanted; do
    echo "installing $package"
    apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
        echo "could not install $package; some tests will be skipped"
done
exit 0
