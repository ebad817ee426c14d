//! Checks a volume and changes nothing: `check IMAGE`.

use volary::Vol;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let checked = Vol::check(std::env::args().nth(1).ok_or("which volume?")?)?;
    for finding in &checked.findings {
        println!("{}: {}", finding.code, finding.message);
    }
    println!(
        "{}",
        if checked.is_clean() {
            "clean"
        } else {
            "damaged"
        }
    );
    Ok(())
}
