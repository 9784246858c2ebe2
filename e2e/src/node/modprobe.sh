#!/bin/sh
# Stand-in for modprobe and rmmod on a simulated machine: modules are what the node's own /sys/module and /proc/modules show.
# It knows the modules of the RDMA stack and of the NVIDIA driver; every call is noted in /run/machine/modprobe.log.
set -eu
echo "$(basename "$0") $*" >>/run/machine/modprobe.log
remove=no
[ "$(basename "$0")" = rmmod ] && remove=yes
list=/run/machine/modules
for word in "$@"; do
    case $word in
        -r | --remove) remove=yes; continue ;;
        -*) continue ;;
    esac
    name=$(echo "$word" | tr - _)
    case $name in
        ib_umad | ib_ipoib | ib_uverbs | ib_core | ib_cm | rdma_cm | rdma_ucm | mlx5_core | mlx5_ib | nvidia_peermem | nvidia | rpcrdma) ;;
        *) echo "modprobe: FATAL: Module $word not found in directory /lib/modules/$(uname -r)" >&2; exit 1 ;;
    esac
    kept=$(grep -v "^$name " "$list" || true)
    if [ $remove = yes ]; then
        grep -q "^$name " "$list" || { echo "rmmod: ERROR: Module $word is not currently loaded" >&2; exit 1; }
        printf '%s\n' "$kept" >"$list"
        rm -rf "/sys/module/$name"
    elif ! grep -q "^$name " "$list"; then
        { [ -z "$kept" ] || printf '%s\n' "$kept"; echo "$name 16384 0 - Live 0x0000000000000000"; } >"$list"
        mkdir -p "/sys/module/$name"
        echo 16384 >"/sys/module/$name/coresize"
        echo 0 >"/sys/module/$name/refcnt"
        echo live >"/sys/module/$name/initstate"
    fi
done
