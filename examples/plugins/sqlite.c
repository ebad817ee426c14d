/* A writable file system over SQLite: each operation is a transaction, so that whatever ends the
 * process, each has happened or has not. The configuration is the path of the database.
 *
 *     cc -shared -fPIC -I crates/volary-plugin/include -o libsqlite.so \
 *         examples/plugins/sqlite.c -lsqlite3
 *     volary cp -r --plugin ./libsqlite.so tree 'plugin:sqlite?/tmp/tree.db:/'
 */
#include "volary_plugin.h"
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOT = 1, BLOCK = 16384, STATEMENTS = 96, XATTR_MAX = 65536 };
static const uint64_t SIZE_MAX_FILE = 1ULL << 40;

static const char SCHEMA[] =
	"CREATE TABLE IF NOT EXISTS nodes(ino INTEGER PRIMARY KEY AUTOINCREMENT, kind INT, mode INT,"
	" nlink INT, uid INT, gid INT, rdev INT, size INT, at INT, an INT, mt INT, mn INT, ct INT,"
	" cn INT, bt INT, bn INT, change INT, parent INT, target BLOB);"
	"CREATE TABLE IF NOT EXISTS entries(id INTEGER PRIMARY KEY AUTOINCREMENT, dir INT, name BLOB,"
	" node INT, UNIQUE(dir, name));"
	"CREATE INDEX IF NOT EXISTS listing ON entries(dir, id);"
	"CREATE TABLE IF NOT EXISTS blocks(node INT, n INT, data BLOB, PRIMARY KEY(node, n))"
	" WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS xattrs(node INT, name BLOB, value BLOB, PRIMARY KEY(node, name));";
/* Opens end with the process; so does this table. */
static const char OPENS[] = "PRAGMA temp_store=MEMORY;"
	"CREATE TEMP TABLE opens(handle INTEGER PRIMARY KEY AUTOINCREMENT, node INT);"
	"CREATE INDEX temp.opened ON opens(node);";

#define COLUMNS "n.ino, n.kind, n.mode, n.nlink, n.uid, n.gid, n.rdev, n.size, n.at, n.an, n.mt," \
	" n.mn, n.ct, n.cn, n.bt, n.bn, n.change," \
	" (SELECT count(*) FROM blocks b WHERE b.node = n.ino)"

typedef struct {
	VolaryTable table;
	char *path;
	int read_only;
	sqlite3 *db;
	struct { const char *sql; sqlite3_stmt *stmt; } cache[STATEMENTS];
	int cached;
} Fs;

/* ---- SQL ---- */

static int32_t failed(Fs *fs, const VolaryContext *cx)
{
	int code = sqlite3_errcode(fs->db);
	if (cx)
		snprintf(cx->note, cx->note_room, "SQLite: %s", sqlite3_errmsg(fs->db));
	switch (code & 0xff) {
	case SQLITE_FULL: return VOLARY_NO_SPACE;
	case SQLITE_READONLY: return VOLARY_READ_ONLY;
	case SQLITE_CORRUPT: case SQLITE_NOTADB: return VOLARY_CORRUPT;
	case SQLITE_BUSY: return VOLARY_BUSY;
	default: return VOLARY_IO;
	}
}

/* Prepares a statement, once, and binds: 'i' an int64_t, 'b' bytes and their length. */
static sqlite3_stmt *query(Fs *fs, const char *sql, const char *types, ...)
{
	sqlite3_stmt *stmt = NULL;
	va_list args;
	int i;
	for (i = 0; i < fs->cached && !stmt; i++)
		if (fs->cache[i].sql == sql)
			stmt = fs->cache[i].stmt;
	if (!stmt) {
		if (fs->cached == STATEMENTS ||
		    sqlite3_prepare_v3(fs->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL))
			return NULL;
		fs->cache[fs->cached].sql = sql;
		fs->cache[fs->cached++].stmt = stmt;
	}
	sqlite3_reset(stmt);
	va_start(args, types);
	for (i = 0; types[i]; i++) {
		if (types[i] == 'i') {
			sqlite3_bind_int64(stmt, i + 1, va_arg(args, int64_t));
		} else {
			const void *data = va_arg(args, const void *);
			sqlite3_bind_blob64(stmt, i + 1, data ? data : "", va_arg(args, uint64_t), SQLITE_STATIC);
		}
	}
	va_end(args);
	return stmt;
}

/* Runs a statement without an answer. */
static int32_t run(Fs *fs, const VolaryContext *cx, sqlite3_stmt *stmt)
{
	int32_t code = 0;
	if (!stmt || sqlite3_step(stmt) != SQLITE_DONE)
		code = failed(fs, cx);
	if (stmt)
		sqlite3_reset(stmt);
	return code;
}

/* Asks for one number: 1 if there is one, 0 if not. */
static int32_t number(Fs *fs, const VolaryContext *cx, sqlite3_stmt *stmt, int64_t *out)
{
	int step = stmt ? sqlite3_step(stmt) : SQLITE_ERROR;
	int32_t code = step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : failed(fs, cx);
	if (step == SQLITE_ROW)
		*out = sqlite3_column_int64(stmt, 0);
	if (stmt)
		sqlite3_reset(stmt);
	return code;
}

static int32_t begin(Fs *fs, const VolaryContext *cx)
{
	return fs->read_only ? VOLARY_READ_ONLY : run(fs, cx, query(fs, "BEGIN IMMEDIATE", ""));
}

/* Commits, or takes all back if `code` is an error. */
static int32_t end(Fs *fs, const VolaryContext *cx, int32_t code)
{
	if (code >= 0) {
		int32_t committed = run(fs, cx, query(fs, "COMMIT", ""));
		if (committed == 0)
			return code;
		code = committed;
	}
	if (!sqlite3_get_autocommit(fs->db))
		run(fs, NULL, query(fs, "ROLLBACK", ""));
	return code;
}

/* ---- Nodes ---- */

/* Numbers are never used again, so that there is one generation. No node has the number 0. */
static uint64_t of(VolaryNode node)
{
	return node.generation ? 0 : node.ino;
}

static void columns(sqlite3_stmt *s, int i, VolaryAttr *out)
{
	memset(out, 0, sizeof *out);
	out->node.ino = (uint64_t)sqlite3_column_int64(s, i++);
	out->kind = (uint32_t)sqlite3_column_int64(s, i++);
	out->mode = (uint32_t)sqlite3_column_int64(s, i++);
	out->nlink = (uint32_t)sqlite3_column_int64(s, i++);
	out->uid = (uint32_t)sqlite3_column_int64(s, i++);
	out->gid = (uint32_t)sqlite3_column_int64(s, i++);
	out->rdev = (uint64_t)sqlite3_column_int64(s, i++);
	out->size = (uint64_t)sqlite3_column_int64(s, i++);
	VolaryTime *times[] = {&out->atime, &out->mtime, &out->ctime, &out->btime};
	for (int t = 0; t < 4; t++) {
		times[t]->secs = sqlite3_column_int64(s, i++);
		times[t]->nanos = (uint32_t)sqlite3_column_int64(s, i++);
	}
	out->change = (uint64_t)sqlite3_column_int64(s, i++);
	out->allocated = (uint64_t)sqlite3_column_int64(s, i) * BLOCK;
	out->io_size = BLOCK;
	out->has = VOLARY_HAS_BTIME | VOLARY_HAS_CHANGE;
}

static int32_t load(Fs *fs, const VolaryContext *cx, uint64_t ino, VolaryAttr *out)
{
	sqlite3_stmt *s = query(fs, "SELECT " COLUMNS " FROM nodes n WHERE ino = ?", "i", (int64_t)ino);
	int step = s ? sqlite3_step(s) : SQLITE_ERROR;
	int32_t code = step == SQLITE_ROW ? 0 : step == SQLITE_DONE ? VOLARY_STALE : failed(fs, cx);
	if (step == SQLITE_ROW)
		columns(s, 0, out);
	if (s)
		sqlite3_reset(s);
	return code;
}

static int32_t load_dir(Fs *fs, const VolaryContext *cx, uint64_t ino, VolaryAttr *out)
{
	int32_t code = load(fs, cx, ino, out);
	return code ? code : out->kind == VOLARY_DIR ? 0 : VOLARY_NOT_DIR;
}

static int32_t store(Fs *fs, const VolaryContext *cx, const VolaryAttr *a)
{
	return run(fs, cx, query(fs, "UPDATE nodes SET mode=?, nlink=?, uid=?, gid=?, size=?, at=?, an=?,"
		" mt=?, mn=?, ct=?, cn=?, bt=?, bn=?, change=change+1 WHERE ino=?", "iiiiiiiiiiiiii",
		(int64_t)a->mode, (int64_t)a->nlink, (int64_t)a->uid, (int64_t)a->gid, (int64_t)a->size,
		a->atime.secs, (int64_t)a->atime.nanos, a->mtime.secs, (int64_t)a->mtime.nanos,
		a->ctime.secs, (int64_t)a->ctime.nanos, a->btime.secs, (int64_t)a->btime.nanos,
		(int64_t)a->node.ino));
}

/* Content and attributes have changed now. */
static int32_t touch(Fs *fs, const VolaryContext *cx, uint64_t ino, int links)
{
	return run(fs, cx, query(fs, "UPDATE nodes SET mt=?1, mn=?2, ct=?1, cn=?2, change=change+1,"
		" nlink=nlink+?3 WHERE ino=?4", "iiii", cx->now.secs, (int64_t)cx->now.nanos,
		(int64_t)links, (int64_t)ino));
}

/* Only attributes have. */
static int32_t touch_attr(Fs *fs, const VolaryContext *cx, uint64_t ino, int links)
{
	return run(fs, cx, query(fs, "UPDATE nodes SET ct=?1, cn=?2, change=change+1, nlink=nlink+?3"
		" WHERE ino=?4", "iiii", cx->now.secs, (int64_t)cx->now.nanos, (int64_t)links, (int64_t)ino));
}

/* A node goes with its last name and its last open. */
static int32_t drop_if_unused(Fs *fs, const VolaryContext *cx, uint64_t ino)
{
	int64_t used = 0, id = (int64_t)ino;
	int32_t code = number(fs, cx, query(fs, "SELECT 1 FROM nodes WHERE ino=?1 AND nlink > 0"
		" UNION ALL SELECT 1 FROM temp.opens WHERE node=?1 LIMIT 1", "i", id), &used);
	if (code != 0)
		return code < 0 ? code : 0;
	code = run(fs, cx, query(fs, "DELETE FROM blocks WHERE node=?", "i", id));
	if (!code)
		code = run(fs, cx, query(fs, "DELETE FROM xattrs WHERE node=?", "i", id));
	return code ? code : run(fs, cx, query(fs, "DELETE FROM nodes WHERE ino=?", "i", id));
}

static int32_t entry(Fs *fs, const VolaryContext *cx, uint64_t dir, const char *name, size_t len,
		     VolaryAttr *out)
{
	int64_t ino;
	int32_t code = load_dir(fs, cx, dir, out);
	if (code)
		return code;
	code = number(fs, cx, query(fs, "SELECT node FROM entries WHERE dir=? AND name=?", "ib",
		(int64_t)dir, name, (uint64_t)len), &ino);
	return code < 0 ? code : code == 0 ? VOLARY_NOT_FOUND : load(fs, cx, (uint64_t)ino, out);
}

static int32_t add_entry(Fs *fs, const VolaryContext *cx, uint64_t dir, const char *name, size_t len,
			 uint64_t node)
{
	return run(fs, cx, query(fs, "INSERT INTO entries(dir, name, node) VALUES(?,?,?)", "ibi",
		(int64_t)dir, name, (uint64_t)len, (int64_t)node));
}

static int32_t remove_entry(Fs *fs, const VolaryContext *cx, uint64_t dir, const char *name, size_t len)
{
	return run(fs, cx, query(fs, "DELETE FROM entries WHERE dir=? AND name=?", "ib", (int64_t)dir,
		name, (uint64_t)len));
}

static int32_t check_free(Fs *fs, const VolaryContext *cx, uint64_t dir, const char *name, size_t len)
{
	VolaryAttr found, in;
	int32_t code = entry(fs, cx, dir, name, len, &found);
	if (code != VOLARY_NOT_FOUND)
		return code ? code : VOLARY_EXISTS;
	code = load_dir(fs, cx, dir, &in);
	if (code)
		return code;
	return in.nlink == 0 ? VOLARY_NOT_FOUND : len > 255 ? VOLARY_NAME_TOO_LONG : 0;
}

static VolaryTime chosen(const VolarySetAttr *set, uint32_t bit, VolaryTime given, VolaryTime now)
{
	return set->set & bit ? given : now;
}

static int32_t make(Fs *fs, const VolaryContext *cx, uint64_t dir, const char *name, size_t len,
		    uint32_t kind, uint64_t rdev, const void *target, size_t target_len,
		    const VolarySetAttr *set, VolaryAttr *out)
{
	uint32_t mode = kind == VOLARY_DIR ? 0755 : kind == VOLARY_SYMLINK ? 0777 : 0644;
	VolaryTime at = chosen(set, VOLARY_SET_ATIME, set->atime, cx->now);
	VolaryTime mt = chosen(set, VOLARY_SET_MTIME, set->mtime, cx->now);
	VolaryTime bt = chosen(set, VOLARY_SET_BTIME, set->btime, cx->now);
	int32_t code = check_free(fs, cx, dir, name, len);
	if (code)
		return code;
	if (set->set & VOLARY_SET_DOS)
		return VOLARY_UNSUPPORTED;
	if (set->set & VOLARY_SET_MODE)
		mode = set->mode & 07777;
	uint64_t size = kind == VOLARY_SYMLINK ? target_len : set->set & VOLARY_SET_SIZE ? set->size : 0;
	if (size > SIZE_MAX_FILE)
		return VOLARY_TOO_BIG;
	code = run(fs, cx, query(fs, "INSERT INTO nodes(kind, mode, nlink, uid, gid, rdev, size, at, an, mt,"
		" mn, ct, cn, bt, bn, change, parent, target) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,1,?,?)",
		"iiiiiiiiiiiiiiiib", (int64_t)kind, (int64_t)mode, (int64_t)(kind == VOLARY_DIR ? 2 : 1),
		(int64_t)(set->set & VOLARY_SET_UID ? set->uid : cx->uid),
		(int64_t)(set->set & VOLARY_SET_GID ? set->gid : cx->gid), (int64_t)rdev,
		(int64_t)size, at.secs, (int64_t)at.nanos, mt.secs, (int64_t)mt.nanos, cx->now.secs,
		(int64_t)cx->now.nanos, bt.secs, (int64_t)bt.nanos, (int64_t)dir, target,
		(uint64_t)target_len));
	uint64_t ino = (uint64_t)sqlite3_last_insert_rowid(fs->db);
	if (!code)
		code = add_entry(fs, cx, dir, name, len, ino);
	if (!code)
		code = touch(fs, cx, dir, kind == VOLARY_DIR);
	return code ? code : load(fs, cx, ino, out);
}

/* ---- Content ---- */

/* Gives the part of a block that is there; what is not reads as zeros. */
static int32_t get_block(Fs *fs, const VolaryContext *cx, uint64_t ino, uint64_t n, char *buf)
{
	sqlite3_stmt *s = query(fs, "SELECT data FROM blocks WHERE node=? AND n=?", "ii", (int64_t)ino,
		(int64_t)n);
	int step = s ? sqlite3_step(s) : SQLITE_ERROR;
	int32_t len = step == SQLITE_DONE ? 0 : failed(fs, cx);
	memset(buf, 0, BLOCK);
	if (step == SQLITE_ROW) {
		len = sqlite3_column_bytes(s, 0);
		if (len > BLOCK)
			len = VOLARY_CORRUPT;
		else if (len)
			memcpy(buf, sqlite3_column_blob(s, 0), (size_t)len);
	}
	if (s)
		sqlite3_reset(s);
	return len;
}

static int32_t put_block(Fs *fs, const VolaryContext *cx, uint64_t ino, uint64_t n, const char *buf,
			 size_t len)
{
	return run(fs, cx, query(fs, "INSERT OR REPLACE INTO blocks VALUES(?,?,?)", "iib", (int64_t)ino,
		(int64_t)n, buf, (uint64_t)len));
}

/* Writes, or clears if `data` is NULL. */
static int32_t put(Fs *fs, const VolaryContext *cx, uint64_t ino, uint64_t offset, const char *data,
		   uint64_t len)
{
	char buf[BLOCK];
	for (uint64_t done = 0; done < len;) {
		uint64_t n = (offset + done) / BLOCK, at = (offset + done) % BLOCK;
		uint64_t part = BLOCK - at < len - done ? BLOCK - at : len - done;
		int32_t have = get_block(fs, cx, ino, n, buf), code = 0;
		if (have < 0)
			return have;
		if (data) {
			memcpy(buf + at, data + done, part);
			if (at + part > (uint64_t)have)
				have = (int32_t)(at + part);
			code = put_block(fs, cx, ino, n, buf, (size_t)have);
		} else if (have) {
			memset(buf + at, 0, part);
			code = put_block(fs, cx, ino, n, buf, (size_t)have);
		}
		if (code)
			return code;
		done += part;
	}
	return 0;
}

static int32_t cut(Fs *fs, const VolaryContext *cx, uint64_t ino, uint64_t size)
{
	char buf[BLOCK];
	uint64_t n = size / BLOCK, at = size % BLOCK;
	int32_t code = run(fs, cx, query(fs, "DELETE FROM blocks WHERE node=? AND n>=?", "ii", (int64_t)ino,
		(int64_t)(n + (at > 0))));
	if (code || !at)
		return code;
	int32_t have = get_block(fs, cx, ino, n, buf);
	if (have < 0 || (uint64_t)have <= at)
		return have < 0 ? have : 0;
	return put_block(fs, cx, ino, n, buf, at);
}

/* ---- The operations ---- */

#define FS(fs) Fs *me = fs

static int32_t sq_attach(void *fs, const VolaryContext *cx, const VolaryHost *host, const VolaryAttach *how)
{
	FS(fs);
	(void)host;
	int flags = how->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	if (!*me->path) {
		snprintf(cx->note, cx->note_room, "which database? write plugin:sqlite?PATH");
		return VOLARY_INVALID;
	}
	if (sqlite3_open_v2(me->path, &me->db, flags | SQLITE_OPEN_NOMUTEX, NULL))
		return failed(me, cx);
	me->read_only = how->read_only != 0;
	sqlite3_busy_timeout(me->db, 5000);
	if (!me->read_only) {
		if (sqlite3_exec(me->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;", NULL, NULL, NULL) ||
		    sqlite3_exec(me->db, SCHEMA, NULL, NULL, NULL))
			return failed(me, cx);
	}
	if (sqlite3_exec(me->db, OPENS, NULL, NULL, NULL))
		return failed(me, cx);
	if (me->read_only)
		return 0;
	int32_t code = begin(me, cx);
	if (!code)
		code = run(me, cx, query(me, "INSERT OR IGNORE INTO nodes VALUES(1,?,?,2,?,?,0,0,?5,?6,?5,?6,?5,?6,"
			"?5,?6,1,1,NULL)", "iiiiii", (int64_t)VOLARY_DIR, (int64_t)0755, (int64_t)how->uid,
			(int64_t)how->gid, cx->now.secs, (int64_t)cx->now.nanos));
	/* What was open without a name when the last process ended. */
	if (!code)
		code = run(me, cx, query(me, "DELETE FROM blocks WHERE node IN (SELECT ino FROM nodes WHERE nlink=0)", ""));
	if (!code)
		code = run(me, cx, query(me, "DELETE FROM xattrs WHERE node IN (SELECT ino FROM nodes WHERE nlink=0)", ""));
	if (!code)
		code = run(me, cx, query(me, "DELETE FROM nodes WHERE nlink=0", ""));
	return end(me, cx, code);
}

static int32_t sq_caps(void *fs, VolaryCaps *out)
{
	FS(fs);
	out->can = VOLARY_CAN_MODES | VOLARY_CAN_SYMLINKS | VOLARY_CAN_HARD_LINKS | VOLARY_CAN_DEVICES |
		VOLARY_CAN_XATTRS | VOLARY_CAN_HOLES | VOLARY_CAN_CASE | VOLARY_CAN_KEEP_CASE |
		VOLARY_CAN_STABLE_IDS | VOLARY_CAN_STABLE_COOKIES | VOLARY_CAN_CRASH_SAFE | VOLARY_CAN_SWAP |
		VOLARY_CAN_ANY_NAME | (me->read_only ? 0 : VOLARY_CAN_WRITE);
	out->size_max = SIZE_MAX_FILE;
	out->root.ino = ROOT;
	out->serial = 1;
	return 0;
}

static void sq_release(void *fs)
{
	FS(fs);
	for (int i = 0; i < me->cached; i++)
		sqlite3_finalize(me->cache[i].stmt);
	sqlite3_close_v2(me->db);
	free(me->path);
	free(me);
}

static int32_t sq_sync(void *fs, const VolaryContext *cx)
{
	FS(fs);
	int64_t busy;
	int32_t code = me->read_only ? 0 : number(me, cx, query(me, "PRAGMA wal_checkpoint(FULL)", ""), &busy);
	return code < 0 ? code : 0;
}

static int32_t sq_fsync(void *fs, const VolaryContext *cx, VolaryOpen file, uint32_t data_only)
{
	(void)file, (void)data_only;
	return sq_sync(fs, cx);
}

/* The disk of the database grows with it, and does not shrink: what counts is what files take. */
static int32_t sq_statfs(void *fs, const VolaryContext *cx, VolaryStatFs *out)
{
	int64_t nodes = 0, blocks = 0;
	int32_t code = number(fs, cx, query(fs, "SELECT count(*) FROM nodes", ""), &nodes);
	if (code >= 0)
		code = number(fs, cx, query(fs, "SELECT count(*) FROM blocks", ""), &blocks);
	if (code < 0)
		return code;
	out->block_size = BLOCK;
	out->size = SIZE_MAX_FILE;
	out->free = out->available = SIZE_MAX_FILE - (uint64_t)blocks * BLOCK;
	out->nodes = 1ULL << 40;
	out->nodes_free = out->nodes - (uint64_t)nodes;
	return 0;
}

static int32_t sq_lookup(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len,
			 VolaryAttr *out)
{
	return entry(fs, cx, of(dir), name, len, out);
}

static int32_t sq_getattr(void *fs, const VolaryContext *cx, VolaryNode node, VolaryAttr *out)
{
	return load(fs, cx, of(node), out);
}

static int32_t sq_parent(void *fs, const VolaryContext *cx, VolaryNode dir, VolaryAttr *out)
{
	int64_t ino = 0;
	int32_t code = load_dir(fs, cx, of(dir), out);
	if (code)
		return code;
	code = number(fs, cx, query(fs, "SELECT parent FROM nodes WHERE ino=?", "i", (int64_t)of(dir)), &ino);
	return code < 0 ? code : load(fs, cx, (uint64_t)ino, out);
}

static int32_t sq_readdir(void *fs, const VolaryContext *cx, VolaryOpen dir, uint64_t from,
			  const VolaryList *list)
{
	VolaryAttr attr;
	int32_t code = load_dir(fs, cx, dir.node.ino, &attr);
	if (code)
		return code;
	if (from > INT64_MAX)
		return VOLARY_INVALID;
	sqlite3_stmt *s = query(fs, "SELECT e.id, e.name, " COLUMNS " FROM entries e JOIN nodes n ON n.ino = e.node"
		" WHERE e.dir=? AND e.id>? ORDER BY e.id", "ii", (int64_t)dir.node.ino, (int64_t)from);
	int step = SQLITE_ERROR;
	code = 1;
	while (s && code == 1 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		columns(s, 2, &attr);
		VolaryEntry e = {(uint64_t)sqlite3_column_int64(s, 0), attr.node, attr.kind,
				 (uint32_t)sqlite3_column_bytes(s, 1), sqlite3_column_blob(s, 1), &attr};
		code = list->add(list, &e);
	}
	if (code == 1 && step != SQLITE_DONE)
		code = failed(fs, cx);
	if (s)
		sqlite3_reset(s);
	return code;
}

static int32_t sq_mkdir(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len,
			const VolarySetAttr *set, VolaryAttr *out)
{
	int32_t code = begin(fs, cx);
	if (code)
		return code;
	return end(fs, cx, make(fs, cx, of(dir), name, len, VOLARY_DIR, 0, NULL, 0, set, out));
}

static int32_t sq_mknod(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len,
			uint32_t kind, uint64_t rdev, const VolarySetAttr *set, VolaryAttr *out)
{
	int device = kind == VOLARY_CHAR_DEVICE || kind == VOLARY_BLOCK_DEVICE;
	int32_t code = begin(fs, cx);
	if (code)
		return code;
	return end(fs, cx, make(fs, cx, of(dir), name, len, kind, device ? rdev : 0, NULL, 0, set, out));
}

static int32_t sq_symlink(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len,
			  const char *target, size_t target_len, const VolarySetAttr *set, VolaryAttr *out)
{
	int32_t code = begin(fs, cx);
	if (code)
		return code;
	if (target_len > 4095)
		return end(fs, cx, VOLARY_NAME_TOO_LONG);
	return end(fs, cx, make(fs, cx, of(dir), name, len, VOLARY_SYMLINK, 0, target, target_len, set, out));
}

static int32_t opened(Fs *fs, const VolaryContext *cx, uint64_t ino, uint64_t *handle)
{
	int32_t code = run(fs, cx, query(fs, "INSERT INTO temp.opens(node) VALUES(?)", "i", (int64_t)ino));
	*handle = (uint64_t)sqlite3_last_insert_rowid(fs->db);
	return code;
}

static int32_t create(Fs *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len,
		      uint32_t how, const VolarySetAttr *set, VolaryAttr *out, uint64_t *handle)
{
	int32_t code = entry(fs, cx, of(dir), name, len, out);
	if (code == VOLARY_NOT_FOUND)
		code = make(fs, cx, of(dir), name, len, VOLARY_FILE, 0, NULL, 0, set, out);
	else if (!code && how == VOLARY_CREATE_NEW)
		code = VOLARY_EXISTS;
	else if (!code && out->kind != VOLARY_FILE)
		code = out->kind == VOLARY_DIR ? VOLARY_IS_DIR : VOLARY_INVALID;
	else if (!code && how == VOLARY_CREATE_TRUNCATE) {
		out->size = 0;
		out->mtime = out->ctime = cx->now;
		code = cut(fs, cx, out->node.ino, 0);
		if (!code)
			code = store(fs, cx, out);
		if (!code)
			code = load(fs, cx, out->node.ino, out);
	}
	return code ? code : opened(fs, cx, out->node.ino, handle);
}

static int32_t sq_create(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len,
			 uint32_t how, const VolarySetAttr *set, VolaryAttr *out, uint64_t *handle)
{
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, create(fs, cx, dir, name, len, how, set, out, handle));
}

static int32_t link_it(Fs *fs, const VolaryContext *cx, uint64_t node, uint64_t dir, const char *name,
		       size_t len, VolaryAttr *out)
{
	int32_t code = load(fs, cx, node, out);
	if (!code)
		code = out->kind == VOLARY_DIR ? VOLARY_IS_DIR : check_free(fs, cx, dir, name, len);
	if (!code)
		code = out->nlink == 0 ? VOLARY_STALE : add_entry(fs, cx, dir, name, len, node);
	if (!code)
		code = touch_attr(fs, cx, node, 1);
	if (!code)
		code = touch(fs, cx, dir, 0);
	return code ? code : load(fs, cx, node, out);
}

static int32_t sq_link(void *fs, const VolaryContext *cx, VolaryNode node, VolaryNode dir, const char *name,
		       size_t len, VolaryAttr *out)
{
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, link_it(fs, cx, of(node), of(dir), name, len, out));
}

/* Takes away the name of `gone`, and `gone` with it if that was the last. */
static int32_t removed(Fs *fs, const VolaryContext *cx, uint64_t dir, const char *name, size_t len,
		       const VolaryAttr *gone)
{
	int is_dir = gone->kind == VOLARY_DIR;
	int32_t code = remove_entry(fs, cx, dir, name, len);
	if (!code)
		code = touch(fs, cx, dir, is_dir ? -1 : 0);
	if (!code)
		code = touch_attr(fs, cx, gone->node.ino, is_dir ? -2 : -1);
	return code ? code : drop_if_unused(fs, cx, gone->node.ino);
}

static int32_t is_empty(Fs *fs, const VolaryContext *cx, uint64_t dir)
{
	int64_t one;
	int32_t code = number(fs, cx, query(fs, "SELECT 1 FROM entries WHERE dir=? LIMIT 1", "i", (int64_t)dir), &one);
	return code == 1 ? VOLARY_NOT_EMPTY : code;
}

static int32_t unlink_it(Fs *fs, const VolaryContext *cx, uint64_t dir, const char *name, size_t len,
			 int is_rmdir)
{
	VolaryAttr gone;
	int32_t code = entry(fs, cx, dir, name, len, &gone);
	if (!code && (gone.kind == VOLARY_DIR) != is_rmdir)
		code = is_rmdir ? VOLARY_NOT_DIR : VOLARY_IS_DIR;
	if (!code && is_rmdir)
		code = is_empty(fs, cx, gone.node.ino);
	return code ? code : removed(fs, cx, dir, name, len, &gone);
}

static int32_t sq_unlink(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len)
{
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, unlink_it(fs, cx, of(dir), name, len, 0));
}

static int32_t sq_rmdir(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len)
{
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, unlink_it(fs, cx, of(dir), name, len, 1));
}

/* VOLARY_INVALID if `dir` is `node`, or in it. */
static int32_t not_below(Fs *fs, const VolaryContext *cx, uint64_t node, uint64_t dir)
{
	while (dir != ROOT) {
		int64_t up;
		if (dir == node)
			return VOLARY_INVALID;
		int32_t code = number(fs, cx, query(fs, "SELECT parent FROM nodes WHERE ino=?", "i", (int64_t)dir), &up);
		if (code != 1)
			return code ? code : VOLARY_STALE;
		dir = (uint64_t)up;
	}
	return node == ROOT ? VOLARY_INVALID : 0;
}

/* A directory that was moved has another parent, which has another link. */
static int32_t moved(Fs *fs, const VolaryContext *cx, const VolaryAttr *node, uint64_t from, uint64_t to)
{
	int32_t code = touch_attr(fs, cx, node->node.ino, 0);
	if (code || node->kind != VOLARY_DIR || from == to)
		return code;
	code = run(fs, cx, query(fs, "UPDATE nodes SET parent=? WHERE ino=?", "ii", (int64_t)to,
		(int64_t)node->node.ino));
	if (!code)
		code = touch_attr(fs, cx, from, -1);
	return code ? code : touch_attr(fs, cx, to, 1);
}

static int32_t point(Fs *fs, const VolaryContext *cx, uint64_t dir, const char *name, size_t len, uint64_t node)
{
	return run(fs, cx, query(fs, "UPDATE entries SET node=? WHERE dir=? AND name=?", "iib", (int64_t)node,
		(int64_t)dir, name, (uint64_t)len));
}

static int32_t rename_it(Fs *fs, const VolaryContext *cx, uint64_t from, const char *name, size_t len,
			 uint64_t to, const char *new_name, size_t new_len, uint32_t flags)
{
	VolaryAttr node, old;
	int32_t code = entry(fs, cx, from, name, len, &node);
	if (code)
		return code;
	int32_t taken = entry(fs, cx, to, new_name, new_len, &old);
	int there = taken == 0, swap = flags == VOLARY_RENAME_SWAP;
	if (taken && (taken != VOLARY_NOT_FOUND || swap))
		return taken;
	if (there && old.node.ino == node.node.ino && flags != VOLARY_RENAME_KEEP)
		return 0;
	if (node.kind == VOLARY_DIR && (code = not_below(fs, cx, node.node.ino, to)))
		return code;
	if (swap && old.kind == VOLARY_DIR && (code = not_below(fs, cx, old.node.ino, from)))
		return code;
	if (!there)
		code = check_free(fs, cx, to, new_name, new_len);
	else if (flags == VOLARY_RENAME_KEEP)
		code = VOLARY_EXISTS;
	else if (!swap && old.kind == VOLARY_DIR)
		code = node.kind == VOLARY_DIR ? is_empty(fs, cx, old.node.ino) : VOLARY_IS_DIR;
	else if (!swap && node.kind == VOLARY_DIR)
		code = VOLARY_NOT_DIR;
	if (!code && swap) {
		code = point(fs, cx, from, name, len, old.node.ino);
		if (!code)
			code = point(fs, cx, to, new_name, new_len, node.node.ino);
		if (!code)
			code = moved(fs, cx, &old, to, from);
	} else if (!code) {
		if (there)
			code = removed(fs, cx, to, new_name, new_len, &old);
		if (!code)
			code = remove_entry(fs, cx, from, name, len);
		if (!code)
			code = add_entry(fs, cx, to, new_name, new_len, node.node.ino);
	}
	if (!code)
		code = moved(fs, cx, &node, from, to);
	if (!code)
		code = touch(fs, cx, from, 0);
	return code || from == to ? code : touch(fs, cx, to, 0);
}

static int32_t sq_rename(void *fs, const VolaryContext *cx, VolaryNode from, const char *name, size_t len,
			 VolaryNode to, const char *new_name, size_t new_len, uint32_t flags)
{
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, rename_it(fs, cx, of(from), name, len, of(to), new_name, new_len, flags));
}

static int32_t set_it(Fs *fs, const VolaryContext *cx, uint64_t ino, const VolarySetAttr *set, VolaryAttr *out)
{
	int32_t code = load(fs, cx, ino, out);
	if (code)
		return code;
	if (set->set & VOLARY_SET_DOS)
		return VOLARY_UNSUPPORTED;
	out->ctime = cx->now;
	if (set->set & VOLARY_SET_SIZE) {
		if (out->kind != VOLARY_FILE)
			return out->kind == VOLARY_DIR ? VOLARY_IS_DIR : VOLARY_INVALID;
		if (set->size > SIZE_MAX_FILE)
			return VOLARY_TOO_BIG;
		code = cut(fs, cx, ino, set->size);
		if (code)
			return code;
		out->size = set->size;
		out->mtime = cx->now;
	}
	if (set->set & VOLARY_SET_MODE)
		out->mode = set->mode & 07777;
	if (set->set & VOLARY_SET_UID)
		out->uid = set->uid;
	if (set->set & VOLARY_SET_GID)
		out->gid = set->gid;
	out->atime = chosen(set, VOLARY_SET_ATIME, set->atime, out->atime);
	out->mtime = chosen(set, VOLARY_SET_MTIME, set->mtime, out->mtime);
	out->btime = chosen(set, VOLARY_SET_BTIME, set->btime, out->btime);
	code = store(fs, cx, out);
	return code ? code : load(fs, cx, ino, out);
}

static int32_t sq_setattr(void *fs, const VolaryContext *cx, VolaryNode node, const VolarySetAttr *set,
			  VolaryAttr *out)
{
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, set_it(fs, cx, of(node), set, out));
}

/* Gives bytes of one row, if there is room, and says how many there are. */
static int64_t give(Fs *fs, const VolaryContext *cx, sqlite3_stmt *s, void *buf, size_t room, int64_t none)
{
	int step = s ? sqlite3_step(s) : SQLITE_ERROR;
	int64_t len = step == SQLITE_DONE ? none : failed(fs, cx);
	if (step == SQLITE_ROW) {
		len = sqlite3_column_bytes(s, 0);
		if (len && (size_t)len <= room)
			memcpy(buf, sqlite3_column_blob(s, 0), (size_t)len);
	}
	if (s)
		sqlite3_reset(s);
	return len;
}

static int64_t sq_readlink(void *fs, const VolaryContext *cx, VolaryNode node, char *buf, size_t room)
{
	VolaryAttr attr;
	int32_t code = load(fs, cx, of(node), &attr);
	if (code || attr.kind != VOLARY_SYMLINK)
		return code ? code : VOLARY_INVALID;
	return give(fs, cx, query(fs, "SELECT target FROM nodes WHERE ino=?", "i", (int64_t)of(node)), buf, room,
		VOLARY_STALE);
}

static int64_t sq_getxattr(void *fs, const VolaryContext *cx, VolaryNode node, const char *name, size_t len,
			   void *buf, size_t room)
{
	VolaryAttr attr;
	int32_t code = load(fs, cx, of(node), &attr);
	if (code)
		return code;
	return give(fs, cx, query(fs, "SELECT value FROM xattrs WHERE node=? AND name=?", "ib", (int64_t)of(node),
		name, (uint64_t)len), buf, room, VOLARY_NO_XATTR);
}

static int64_t sq_listxattr(void *fs, const VolaryContext *cx, VolaryNode node, char *buf, size_t room)
{
	VolaryAttr attr;
	int64_t len = load(fs, cx, of(node), &attr);
	if (len)
		return len;
	sqlite3_stmt *s = query(fs, "SELECT name FROM xattrs WHERE node=? ORDER BY name", "i", (int64_t)of(node));
	while (s && sqlite3_step(s) == SQLITE_ROW) {
		size_t part = (size_t)sqlite3_column_bytes(s, 0);
		if ((size_t)len + part + 1 <= room) {
			memcpy(buf + len, sqlite3_column_blob(s, 0), part);
			buf[(size_t)len + part] = 0;
		}
		len += (int64_t)part + 1;
	}
	if (s)
		sqlite3_reset(s);
	return s ? len : failed(fs, cx);
}

static int32_t xattr_it(Fs *fs, const VolaryContext *cx, uint64_t ino, const char *name, size_t len,
			const void *value, size_t value_len, int is_set)
{
	VolaryAttr attr;
	int32_t code = load(fs, cx, ino, &attr);
	if (code)
		return code;
	if (is_set) {
		if (value_len > XATTR_MAX || len > 255)
			return VOLARY_TOO_BIG;
		code = run(fs, cx, query(fs, "INSERT OR REPLACE INTO xattrs VALUES(?,?,?)", "ibb", (int64_t)ino, name,
			(uint64_t)len, value, (uint64_t)value_len));
	} else {
		code = run(fs, cx, query(fs, "DELETE FROM xattrs WHERE node=? AND name=?", "ib", (int64_t)ino, name,
			(uint64_t)len));
		if (!code && sqlite3_changes(fs->db) == 0)
			return VOLARY_NO_XATTR;
	}
	return code ? code : touch_attr(fs, cx, ino, 0);
}

static int32_t sq_setxattr(void *fs, const VolaryContext *cx, VolaryNode node, const char *name, size_t len,
			   const void *value, size_t value_len)
{
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, xattr_it(fs, cx, of(node), name, len, value, value_len, 1));
}

static int32_t sq_removexattr(void *fs, const VolaryContext *cx, VolaryNode node, const char *name, size_t len)
{
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, xattr_it(fs, cx, of(node), name, len, NULL, 0, 0));
}

static int32_t sq_open(void *fs, const VolaryContext *cx, VolaryNode node, uint32_t mode, uint64_t *handle)
{
	FS(fs);
	VolaryAttr attr;
	int32_t code = load(me, cx, of(node), &attr);
	if (code)
		return code;
	if (mode & VOLARY_WRITE && (me->read_only || attr.kind == VOLARY_DIR))
		return attr.kind == VOLARY_DIR ? VOLARY_IS_DIR : VOLARY_READ_ONLY;
	return opened(me, cx, of(node), handle);
}

static int32_t sq_close(void *fs, const VolaryContext *cx, VolaryOpen open)
{
	FS(fs);
	int32_t code = run(me, cx, query(me, "DELETE FROM temp.opens WHERE handle=?", "i", (int64_t)open.handle));
	if (code || me->read_only)
		return code;
	VolaryAttr attr;
	if (load(me, cx, open.node.ino, &attr) || attr.nlink > 0)
		return 0;
	code = begin(me, cx);
	return code ? code : end(me, cx, drop_if_unused(me, cx, open.node.ino));
}

static int64_t sq_read(void *fs, const VolaryContext *cx, VolaryOpen file, uint64_t offset, void *buf, size_t len)
{
	VolaryAttr attr;
	char block[BLOCK];
	int32_t code = load(fs, cx, file.node.ino, &attr);
	if (code)
		return code;
	if (attr.kind != VOLARY_FILE)
		return attr.kind == VOLARY_DIR ? VOLARY_IS_DIR : VOLARY_INVALID;
	if (!(file.mode & VOLARY_READ))
		return VOLARY_NO_ACCESS;
	if (offset >= attr.size)
		return 0;
	if (len > attr.size - offset)
		len = (size_t)(attr.size - offset);
	for (size_t done = 0; done < len;) {
		uint64_t n = (offset + done) / BLOCK, at = (offset + done) % BLOCK;
		size_t part = BLOCK - at < len - done ? (size_t)(BLOCK - at) : len - done;
		code = get_block(fs, cx, file.node.ino, n, block);
		if (code < 0)
			return code;
		memcpy((char *)buf + done, block + at, part);
		done += part;
	}
	return (int64_t)len;
}

static int64_t write_it(Fs *fs, const VolaryContext *cx, VolaryOpen file, uint64_t offset, uint32_t append,
			const void *data, size_t len)
{
	VolaryAttr attr;
	int32_t code = load(fs, cx, file.node.ino, &attr);
	if (code)
		return code;
	if (attr.kind == VOLARY_DIR)
		return VOLARY_IS_DIR;
	if (!(file.mode & VOLARY_WRITE))
		return VOLARY_NO_ACCESS;
	if (append)
		offset = attr.size;
	if (len == 0)
		return (int64_t)offset;
	if (offset > SIZE_MAX_FILE || len > SIZE_MAX_FILE - offset)
		return VOLARY_TOO_BIG;
	code = put(fs, cx, file.node.ino, offset, data, len);
	if (code)
		return code;
	if (offset + len > attr.size)
		attr.size = offset + len;
	attr.mtime = attr.ctime = cx->now;
	code = store(fs, cx, &attr);
	return code ? code : (int64_t)(offset + len);
}

static int64_t sq_write(void *fs, const VolaryContext *cx, VolaryOpen file, uint64_t offset, uint32_t append,
			const void *data, size_t len)
{
	int32_t code = begin(fs, cx);
	if (code)
		return code;
	int64_t done = write_it(fs, cx, file, offset, append, data, len);
	code = end(fs, cx, done < 0 ? (int32_t)done : 0);
	return code ? code : done;
}

static int32_t hole_it(Fs *fs, const VolaryContext *cx, VolaryOpen file, uint64_t offset, uint64_t len)
{
	VolaryAttr attr;
	int32_t code = load(fs, cx, file.node.ino, &attr);
	if (code || attr.kind != VOLARY_FILE)
		return code ? code : VOLARY_INVALID;
	uint64_t stop = len > SIZE_MAX_FILE - (offset < SIZE_MAX_FILE ? offset : SIZE_MAX_FILE) ? SIZE_MAX_FILE : offset + len;
	uint64_t first = (offset + BLOCK - 1) / BLOCK, last = stop / BLOCK;
	if (offset >= stop)
		return 0;
	if (first < last) {
		code = run(fs, cx, query(fs, "DELETE FROM blocks WHERE node=? AND n>=? AND n<?", "iii",
			(int64_t)file.node.ino, (int64_t)first, (int64_t)last));
		if (!code)
			code = put(fs, cx, file.node.ino, offset, NULL, first * BLOCK - offset);
		if (!code)
			code = put(fs, cx, file.node.ino, last * BLOCK, NULL, stop - last * BLOCK);
	} else {
		code = put(fs, cx, file.node.ino, offset, NULL, stop - offset);
	}
	return code ? code : touch(fs, cx, file.node.ino, 0);
}

static int32_t sq_allocate(void *fs, const VolaryContext *cx, VolaryOpen file, uint64_t offset, uint64_t len,
			   uint32_t hole)
{
	if (!hole)
		return VOLARY_UNSUPPORTED;
	int32_t code = begin(fs, cx);
	return code ? code : end(fs, cx, hole_it(fs, cx, file, offset, len));
}

VOLARY_EXPORT const VolaryTable *FileSystemCreate(const char *name, const char *config, uint32_t version)
{
	if ((*name && strcmp(name, "sqlite")) || version != VOLARY_PLUGIN_VERSION)
		return NULL;
	Fs *fs = calloc(1, sizeof *fs);
	if (!fs || !(fs->path = malloc(strlen(config) + 1))) {
		free(fs);
		return NULL;
	}
	strcpy(fs->path, config);
	fs->table = (VolaryTable){
		.version = VOLARY_PLUGIN_VERSION, .size = sizeof(VolaryTable), .fs = fs,
		.lookup = sq_lookup, .getattr = sq_getattr, .readdir = sq_readdir, .read = sq_read,
		.attach = sq_attach, .release = sq_release, .caps = sq_caps, .statfs = sq_statfs,
		.sync = sq_sync, .parent = sq_parent, .create = sq_create, .mkdir = sq_mkdir,
		.mknod = sq_mknod, .symlink = sq_symlink, .link = sq_link, .unlink = sq_unlink,
		.rmdir = sq_rmdir, .rename = sq_rename, .setattr = sq_setattr, .readlink = sq_readlink,
		.getxattr = sq_getxattr, .setxattr = sq_setxattr, .listxattr = sq_listxattr,
		.removexattr = sq_removexattr, .open = sq_open, .write = sq_write, .fsync = sq_fsync,
		.allocate = sq_allocate, .close = sq_close,
	};
	return &fs->table;
}
