set -e
sed -i -e 's/^port = .*/port = 8443/' -e 's/^workers = .*/workers = 12/' \
  -e 's|^certificate = .*|certificate = certs/service-2025.pem|' \
  -e 's/^level = .*/level = info/' -e 's/^timeout_seconds = .*/timeout_seconds = 10/' service.ini
python3 -B validate.py service.ini
