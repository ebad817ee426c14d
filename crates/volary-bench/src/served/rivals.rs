//! Starting Samba, nfs-ganesha and `passthrough_ll`, each on one directory.

use super::mounts::Mounted;
use super::{Clients, PASSWORD, Running, Servers, Started, USER};
use crate::needs::{self, Lacks};
use anyhow::{Result, bail};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SMB_PORT: u16 = 14_450;
const NFS_PORT: u16 = 20_490;
const MOUNT_PORT: u16 = 20_048;
/// Where Debian's libfuse3-dev has the source.
const PASSTHROUGH: &str = "/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c";

/// Samba without modules: the fastest that it can be. `signs`: every message is signed, as volary
/// has it; otherwise, as Samba has it, none that the client does not sign.
pub(crate) fn samba(state: &Path, dir: &Path, clients: &Clients, signs: bool) -> Result<Started> {
    let client = clients.smb(SMB_PORT, "share")?;
    let config = samba_config(state, dir, signs)?;
    let log = state.join("out");
    let mut servers = Servers::default();
    let mut smbd = Command::new("smbd");
    smbd.args(["--foreground", "--no-process-group", "-s"])
        .arg(&config);
    servers.start(&smbd, &log)?;
    servers.wait(SMB_PORT, &log)?;
    Ok((Box::new(servers), client))
}

/// Returns a configuration with all its state in one folder, and one user.
fn samba_config(state: &Path, dir: &Path, signs: bool) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let parts = ["private", "state", "cache", "lock", "pid", "ncalrpc"];
    for part in parts {
        fs::create_dir_all(state.join(part))?;
    }
    fs::set_permissions(state.join("private"), fs::Permissions::from_mode(0o700))?;
    let at = state.display();
    let mut text = format!(
        "[global]\nserver role = standalone server\ninterfaces = 127.0.0.1/8\n\
         bind interfaces only = yes\nsmb ports = {SMB_PORT}\ndisable netbios = yes\n\
         passdb backend = tdbsam:{at}/private/passdb.tdb\nlog file = {at}/log\n\
         map to guest = never\nload printers = no\nprinting = bsd\nprintcap name = /dev/null\n\
         disable spoolss = yes\nrpc start on demand helpers = false\nkernel oplocks = no\n\
         pid directory = {at}/pid\n"
    );
    if signs {
        text.push_str("server signing = mandatory\n");
    }
    for part in ["private", "state", "cache", "lock"] {
        text.push_str(&format!("{part} {} = {at}/{part}\n", directory(part)));
    }
    text.push_str(&format!("ncalrpc dir = {at}/ncalrpc\n"));
    text.push_str(&format!(
        "[share]\npath = {}\nread only = no\nvfs objects =\nea support = no\n\
         store dos attributes = no\n",
        dir.display()
    ));
    let config = state.join("smb.conf");
    fs::write(&config, text)?;
    let mut passwd = Command::new("smbpasswd");
    passwd.arg("-c").arg(&config).args(["-s", "-a", USER]);
    needs::program(&passwd)?;
    let mut passwd = passwd.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    if let Some(mut input) = passwd.stdin.take() {
        write!(input, "{PASSWORD}\n{PASSWORD}\n")?;
    }
    if !passwd.wait()?.success() {
        bail!("smbpasswd refused the user {USER}");
    }
    Ok(config)
}

/// Returns how Samba spells the parameter.
fn directory(part: &str) -> &'static str {
    if part == "private" {
        "dir"
    } else {
        "directory"
    }
}

/// nfs-ganesha, and the portmapper that it wants.
pub(crate) fn ganesha(state: &Path, dir: &Path, clients: &Clients) -> Result<Started> {
    for needed in [
        state,
        Path::new("/var/run/ganesha"),
        Path::new("/var/lib/nfs/ganesha"),
    ] {
        fs::create_dir_all(needed)?;
    }
    let path = dir.display();
    let client = clients.nfs(NFS_PORT, MOUNT_PORT, &path.to_string())?;
    let plugins = format!("/usr/lib/{}-linux-gnu/ganesha", std::env::consts::ARCH);
    let config = state.join("ganesha.conf");
    fs::write(
        &config,
        format!(
            "NFS_CORE_PARAM {{ NFS_Port = {NFS_PORT}; MNT_Port = {MOUNT_PORT}; \
             NFS_Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; \
             Plugins_Dir = \"{plugins}\"; }}\n\
             NFS_KRB5 {{ Active_krb5 = false; }}\n\
             EXPORT_DEFAULTS {{ SecType = sys; Transports = TCP; PrivilegedPort = false; }}\n\
             EXPORT {{ Export_Id = 1; Path = \"{path}\"; Pseudo = \"/export\"; Protocols = 3; \
             Access_Type = RW; Squash = No_Root_Squash; Disable_ACL = true; \
             Filesystem_id = 77.77; FSAL {{ Name = VFS; }} }}\n"
        ),
    )?;
    let log = state.join("out");
    let mut servers = Servers::default();
    let mut rpcbind = Command::new("rpcbind");
    rpcbind.args(["-w", "-f"]);
    servers.start(&rpcbind, &state.join("rpcbind"))?;
    servers.wait(111, &state.join("rpcbind"))?;
    let mut nfsd = Command::new("ganesha.nfsd");
    nfsd.args(["-F", "-N", "NIV_EVENT", "-f"]).arg(&config);
    nfsd.arg("-L").arg(state.join("log"));
    nfsd.arg("-p").arg(state.join("pid"));
    servers.start(&nfsd, &log)?;
    servers.wait(NFS_PORT, &state.join("log"))?;
    servers.wait(MOUNT_PORT, &state.join("log"))?;
    Ok((Box::new(servers), client))
}

/// Compiles libfuse's example from its own source, if that has not been done.
///
/// # Errors
/// [`Lacks`] without libfuse3-dev or a compiler.
fn compile_passthrough(program: &Path) -> Result<()> {
    if program.is_file() {
        return Ok(());
    }
    if !Path::new(PASSTHROUGH).is_file() {
        return Err(Lacks::new(format!("no {PASSTHROUGH}: apt-get install libfuse3-dev")).into());
    }
    super::clients::cc(Path::new(PASSTHROUGH), program, &["fuse3"])
}

impl Running for Mounted {}

/// `passthrough_ll` with its defaults; `program` is where it is compiled to.
pub(crate) fn passthrough(
    program: &Path,
    dir: &Path,
    at: &Path,
    clients: &Clients,
) -> Result<Started> {
    compile_passthrough(program)?;
    let mut command = Command::new(program);
    command.args(["-f", "-o"]);
    command.arg(format!("source={}", dir.display())).arg(at);
    let mounted = Mounted::start(command, at)?;
    Ok((Box::new(mounted), clients.posix(at)?))
}
