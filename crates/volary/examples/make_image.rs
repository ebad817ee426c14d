//! Copies a tree of the host into a new FAT image: `make_image TREE IMAGE`.

use volary::Vol;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let vol = Vol::make(&args[2], "fat32", 64 << 20)?;
    let copied = vol.copy_in(format!("{}/.", args[1]), "/")?;
    vol.close()?;
    println!("{} files", copied.files);
    Ok(())
}
