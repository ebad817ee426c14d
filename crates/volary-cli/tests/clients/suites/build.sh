# Makes a C project of $2 sources and some more in the new directory $1, builds it there,
# and prints what came of it, the same wherever the directory lies.
set -e
unset MAKEFLAGS MAKELEVEL
export LC_ALL=C
mkdir "$1"
cd "$1"
mkdir src obj

# A program writes a header that all else needs.
cat > table.c <<'END'
#include <stdio.h>
int main(int argc, char **argv) {
    printf("static const int table[] = {0");
    for (int i = 1; i < 1000; i++) printf(", %d", i * i % 997);
    printf("};\n");
    return argc != 1;
}
END
for n in $(seq "$2"); do
    printf '#include "table.h"\nint f%d(int x) { return x * %d + table[%d]; }\n' "$n" "$n" "$n" > "src/f$n.c"
    echo "int f$n(int);" >> src/all.h
    echo "SAY($n, f$n(argc))" >> src/calls.h
done
cat > src/main.c <<'END'
#include <stdio.h>
#include "all.h"
#define SAY(n, value) printf("%d: %d\n", n, value);
int main(int argc, char **argv) {
#include "calls.h"
    return 0;
}
END
cat > Makefile <<'END'
OBJECTS := $(patsubst src/%.c,obj/%.o,$(sort $(wildcard src/f*.c)))
result: program
	./program > $@.new
	mv $@.new $@
program: obj/main.o lib.a
	cc -o $@ $^
lib.a: $(OBJECTS)
	rm -f $@
	ar rcD $@ $^
obj/%.o: src/%.c table.h
	cc -O1 -I. -MMD -c -o $@ $<
table.h: table
	./table > $@.new
	mv $@.new $@
table: table.c
	cc -o $@ $<
clean:
	rm -rf obj/* again words table table.h lib.a program result
-include $(wildcard obj/*.d)
END

# Warnings that the clock of a server is ahead are not looked at.
quietly() { "$@" 2> words || { cat words >&2; exit 1; }; }
quietly make -j2 > /dev/null
quietly make -q && echo "all is up to date"
cat result
sha256sum result table table.h program lib.a obj/* > sums
cat sums
# It rests with the times whether that much is built again, and no more. FAT's have steps
# of two seconds.
sleep 2
touch -d '1 minute' src/f1.c
quietly make > again
sort again
sha256sum -c --quiet sums
