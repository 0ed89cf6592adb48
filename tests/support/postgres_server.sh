#!/usr/bin/env bash
# postgres_server.sh FOLDER: a PostgreSQL server for tests, in the foreground, with its data and its
# socket in FOLDER, which is its own from then on: postgres://postgres@/postgres?host=FOLDER. It ends
# with the process that started it. Its programs are those of tools/setup.sh test.
set -euo pipefail
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
home=${TESSERA_POSTGRES:-$root/.cache/postgres}
[ -x "$home/lib/postgresql/15/bin/postgres" ] ||
  { echo "postgres_server: $home has no PostgreSQL: run tools/setup.sh test" >&2; exit 1; }
as=(setpriv --pdeathsig QUIT)
if [ "$(id -u)" -eq 0 ]; then  # It refuses to run as root, and others may not read our folders.
  cp -a "$home" "$folder/home"
  home=$folder/home
  chown -R nobody "$folder"
  as+=(--reuid nobody --regid nogroup --clear-groups)
fi
cd "$folder"
"${as[@]}" "$home/lib/postgresql/15/bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 \
  --locale C --no-sync >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2; exit 1; }
# Tests kill clients, never the server: nothing of it has to reach the disk.
exec "${as[@]}" "$home/lib/postgresql/15/bin/postgres" -D "$folder/data" -k "$folder" \
  -c listen_addresses= -c fsync=off
