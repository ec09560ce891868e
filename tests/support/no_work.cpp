// For programs that are only linked.
int main() {}
