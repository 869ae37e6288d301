// kiln-probe: what may crash or hang, in a process of its own.
#include <kiln/probe.hpp>

int main(int argc, char** argv) { return kiln::probe_main(argc, argv); }
