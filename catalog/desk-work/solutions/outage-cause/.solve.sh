number="$(grep -n 'pool.max_connections 200 -> 20' logs/store.log | cut -d: -f1)"
echo "store.log:$number" > cause.txt
