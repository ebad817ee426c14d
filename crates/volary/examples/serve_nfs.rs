//! Serves a volume by NFS to this host, until its standard input ends: `serve_nfs IMAGE`.

use volary::Vol;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vol = Vol::open(std::env::args().nth(1).ok_or("which volume?")?)?;
    let served = vol.serve().read_only().nfs("127.0.0.1:0".parse()?)?;
    if let Some(address) = served.address() {
        println!("nfs://{address}/volary");
    }
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    served.stop()?;
    Ok(())
}
