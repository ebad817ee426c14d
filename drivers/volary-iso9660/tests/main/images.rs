//! Images that others make.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use volary_testkit::oracle::{GENISOIMAGE, Tool};
use volary_testkit::rng::pattern;

pub(crate) const XORRISO: Tool = Tool {
    program: "xorriso",
    package: "xorriso",
};

/// A tree on the host, and images of it.
pub(crate) struct Images {
    dir: tempfile::TempDir,
}

impl Images {
    pub(crate) fn new() -> Self {
        let images = Self {
            dir: volary_testkit::volumes::scratch(),
        };
        images.fill();
        images
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.dir.path().join("src")
    }

    fn fill(&self) {
        let src = self.source();
        fs::create_dir_all(src.join("dir/sub")).unwrap();
        for (n, len) in [0, 1, 2047, 2048, 2049, 300_000].into_iter().enumerate() {
            fs::write(src.join(format!("size{len}")), pattern(n as u64, len)).unwrap();
        }
        fs::write(src.join("dir/Mixed Case Name.txt"), "hello").unwrap();
        fs::write(src.join("dir/sub").join("n".repeat(200)), "long").unwrap();
        fs::write(src.join("grün"), "x").unwrap();
        symlink("dir/sub/../Mixed Case Name.txt", src.join("link")).unwrap();
        let long = format!("/etc/{}long", "very/".repeat(40));
        symlink(long, src.join("abs")).unwrap();
        symlink("p".repeat(240), src.join("part")).unwrap();
        fs::hard_link(src.join("size2049"), src.join("hard")).unwrap();
        fs::hard_link(src.join("size2049"), src.join("dir/hard too")).unwrap();
        let deep = (0..12).fold(src.join("deep"), |dir, n| dir.join(format!("level {n}")));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("f"), "deep").unwrap();
        fs::create_dir(src.join("many")).unwrap();
        for n in 0..300 {
            fs::write(src.join(format!("many/file number {n}")), n.to_string()).unwrap();
        }
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(src.join("size1"), fs::Permissions::from_mode(0o4751)).unwrap();
        let file = fs::File::options().write(true).open(src.join("size2047"));
        let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_200_000_001);
        file.unwrap().set_modified(then).unwrap();
    }

    fn made(&self, name: &str, tool: Tool, args: &[&str]) -> PathBuf {
        let image = self.dir.path().join(name);
        let mut command = tool.command();
        let args = args.iter().map(|&arg| match arg {
            "OUT" => image.clone().into_os_string(),
            "DRIVE" => format!("stdio:{}", image.display()).into(),
            "SRC" => self.source().into_os_string(),
            arg => arg.into(),
        });
        let output = command.args(args).output().expect("a run");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {told}");
        image
    }

    /// By xorriso, with Rock Ridge (and Joliet).
    pub(crate) fn xorriso(&self) -> PathBuf {
        let how = "-as mkisofs -quiet -J -joliet-long -V LABEL -o OUT SRC";
        let args: Vec<&str> = how.split(' ').collect();
        self.made("xorriso.iso", XORRISO, &args)
    }

    /// By xorriso, with Rock Ridge 1.12, whose PX has a serial number.
    pub(crate) fn xorriso_new(&self) -> PathBuf {
        let how = "-compliance rec_mtime:new_rr -hardlinks on -outdev DRIVE -map SRC /";
        let args: Vec<&str> = how.split(' ').collect();
        self.made("xorriso-new.iso", XORRISO, &args)
    }

    /// By xorriso, with Joliet alone.
    pub(crate) fn joliet(&self) -> PathBuf {
        let how =
            "-rockridge off -joliet on -compliance joliet_long_names -outdev DRIVE -map SRC /";
        let args: Vec<&str> = how.split(' ').collect();
        self.made("joliet.iso", XORRISO, &args)
    }

    /// By genisoimage, with Rock Ridge; it moves deep directories.
    pub(crate) fn genisoimage(&self) -> PathBuf {
        let how = "-quiet -R -V LABEL -o OUT SRC";
        let args: Vec<&str> = how.split(' ').collect();
        self.made("genisoimage.iso", GENISOIMAGE, &args)
    }

    /// By genisoimage, plain, of a part of the tree that such names can hold.
    pub(crate) fn plain(&self) -> PathBuf {
        let how = "-quiet -iso-level 2 -V LABEL -o OUT";
        let mut args: Vec<&str> = how.split(' ').collect();
        let src = self.source();
        let dir = src.join("dir");
        args.push(dir.to_str().expect("a path"));
        self.made("plain.iso", GENISOIMAGE, &args)
    }
}
