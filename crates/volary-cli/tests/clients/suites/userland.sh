# Makes a small system of the host's own programs in the new directory $1: a shell, the usual
# tools, a compiler, devices, an ordinary user. Run by root.
set -e
root=$1
umask 022
mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/lib64" "$root/etc" "$root/dev" "$root/proc" \
    "$root/root" "$root/home/user" "$root/sbin"
mkdir -m 1777 "$root/tmp"
for dir in bin lib lib64; do ln -s "usr/$dir" "$root/$dir"; done
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
echo 'root:x:0:0:root:/root:/bin/sh
user:x:1000:1000:user:/home/user:/bin/sh' > "$root/etc/passwd"
chown 1000:1000 "$root/home/user"

# Copies files, by what their names lead to.
put() {
    for file; do
        mkdir -p "$root/$(dirname "$file")"
        cp -L --preserve=mode "$file" "$root/$file"
    done
}
# Copies programs to /usr/bin, or where they are if that is no place of a PATH, and their libraries.
program() {
    for name; do
        path=$(command -v "$name")
        case $path in
        */bin/* | */sbin/*) cp -L --preserve=mode "$path" "$root/usr/bin/$(basename "$path")" ;;
        *) put "$path" ;;
        esac
        libraries "$path"
    done
}
libraries() {
    ldd "$1" 2> /dev/null | grep -o '/[^ ]*' | while read -r library; do
        [ -e "$root/$library" ] || put "$library"
    done
}
program sh cat chmod chroot cp env grep id ln ls make mkdir mv readlink rm seq sha256sum sleep \
    sort stat sync touch uname ar as cc ld mount
program "$(cc -print-prog-name=cc1)" "$(cc -print-prog-name=collect2)"
gcc=$(dirname "$(cc -print-libgcc-file-name)")
put "$gcc"/crt*.o "$gcc"/libgcc*.a "$gcc"/libgcc_s.so* "$gcc"/liblto_plugin.so
cp -rL "$gcc/include" "$root/$gcc/"
put $(echo '#include <stdio.h>' | cc -O1 -E -M - | grep -o '/[^ ]*')
for name in crt1.o Scrt1.o crti.o crtn.o libc.so libc_nonshared.a libgcc_s.so.1; do
    put "$(realpath -s "$(cc -print-file-name="$name")")"
done
# What libc.so, a script of the linker's, names.
grep -o '/[^ ]*' "$(cc -print-file-name=libc.so)" | while read -r file; do
    [ ! -f "$file" ] || put "$file"
done
