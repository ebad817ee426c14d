//! Reads a file of a volume of which only one folder is to be seen, through a layer: `one_folder IMAGE FOLDER PATH`.

use volary::Vol;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let folder = format!("subtree={}", args[2]);
    let vol = Vol::options().layer(folder).open(&args[1])?;
    println!("{} bytes", vol.read(&args[3])?.len());
    Ok(())
}
