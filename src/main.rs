fn main() {
    drawbridge::backend::stdio::child_main_if_asked();
}
