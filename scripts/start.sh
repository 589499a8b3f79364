#!/usr/bin/env bash
# Finds a Python 3.11 or 3.12, sets up what is missing, runs one of our scripts:
#     bash scripts/start.sh demo.py --port 8080
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fits() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' \
    >/dev/null 2>&1
}

# The environment's own Python comes first: what was set up with it stays current.
candidates() {
  echo "$scripts/../.venv/bin/python"
  printf '%s\n' python3 python3.12 python3.11
  printf '%s\n' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[12].*/bin/python3
  uv python find --system --no-python-downloads '>=3.11,<3.13' 2>/dev/null || true
}

while read -r python <&3; do
  if fits "$python"; then
    exec "$python" "$scripts/setup_environment.py" "$@" 3<&-
  fi
done 3< <(candidates)

echo "This needs Python 3.11 or 3.12, and none was found. Install one (Debian and" \
  "Ubuntu: apt-get install python3 python3-venv; with uv: uv python install 3.12)." >&2
exit 1
