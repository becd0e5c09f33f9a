//! Compiles the program again when the web app within it was built again.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist-one");
}
