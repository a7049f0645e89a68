# Builds the sandbox's file system inside fresh namespaces, leaves the host's behind, drops every
# capability and runs the command. Any step that fails ends it: nothing runs half confined.
# Arguments: root, mount point, process ceiling or "", bytes of /tmp, system directories, files of /etc, --, command...
set -eu
root=$1 workspace=$2 ceiling=$3 size=$4 system=$5 etc=$6
shift 7

# /sys exists everywhere and no workspace lives below it: here the new root is built.
mount -t tmpfs -o nosuid,nodev,size=4m,mode=755 tmpfs /sys
cd /sys
mkdir usr proc dev tmp etc host "./$workspace"
mount --rbind /usr usr
for path in $system; do
    if [ -L "$path" ]; then
        ln -s "$(readlink "$path")" ".$path"
    elif [ -d "$path" ]; then
        mkdir ".$path"
        mount --rbind "$path" ".$path"
    fi
done

printf '%s\n' "$etc" | while IFS= read -r path; do
    if [ -d "$path" ]; then mkdir "etc/${path##*/}"; else : > "etc/${path##*/}"; fi
    mount --rbind "$path" "etc/${path##*/}"
done
for device in null zero full random urandom; do
    : > "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

# Everything bound from the host is read-only, with whatever is mounted below it. (What the host itself
# has mounted below /sys is listed too, but hidden.)
while read -r _ _ _ _ point _; do
    case $point in
    /sys/usr | /sys/usr/* | /sys/etc/* | /sys/bin* | /sys/sbin* | /sys/lib*)
        mount -o remount,bind,ro,nosuid,nodev "$(printf '%b' "$point")"
        ;;
    esac
done < /proc/self/mountinfo

mount --rbind "$root" "./$workspace"
mount -o remount,bind,nosuid,nodev "./$workspace"
mount -t tmpfs -o "nosuid,nodev,size=$size,mode=1777" tmpfs tmp
mount -t proc -o nosuid,nodev,noexec proc proc
echo 0 > proc/sys/user/max_user_namespaces
if [ -n "$ceiling" ]; then echo "$ceiling" > proc/sys/kernel/pid_max; fi
mount -o remount,bind,ro,nosuid,nodev,noexec proc
hostname sandbox 2> /dev/null || true

pivot_root . host
cd /
umount -l /host
rmdir /host
mount -o remount,bind,ro,nosuid,nodev /
cd "$workspace"
exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs -- "$@"
