#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace {

struct Ran {
  int status = -1;
  std::string output;
  std::string journal;
};

// The program with the shim preloaded, and `variables` in its environment.
Ran run(const std::string& mode, const std::string& variables = "") {
  std::string log = "/tmp/kiln-sim-shim-XXXXXX";
  ::close(::mkstemp(log.data()));
  // By name: what is preloaded is parted by blanks, which folders may have.
  const std::filesystem::path library = KILN_SIM_LIBRARY;
  const std::string command = variables + " KILN_SIM_LOG=" + log + " LD_LIBRARY_PATH='" +
                              library.parent_path().string() + "' LD_PRELOAD=" + library.filename().string() +
                              " '" KILN_SIM_PROGRAM "' " + mode + " 2>&1";
  Ran ran;
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> text{};
  while (const std::size_t count = std::fread(text.data(), 1, text.size(), pipe)) ran.output.append(text.data(), count);
  ran.status = ::pclose(pipe);
  std::ostringstream lines;
  lines << std::ifstream(log).rdbuf();
  ran.journal = lines.str();
  std::filesystem::remove(log);
  return ran;
}

}  // namespace

TEST_CASE("simulator shim: libdrm finds and describes the gfx1100 device") {
  const Ran ran = run("facts");
  CAPTURE(ran.output, ran.journal);
  CHECK(ran.status == 0);
  CHECK(ran.output ==
        "version amdgpu 3.54 AMD GPU (kiln-simulated gfx1100)\n"
        "device 744c family 145 units 96\n"
        "node 1 226:128\n"
        "bus 0000:03:00.0 1002:744c revision c8\n"
        "path /sys/devices/pci0000:00/0000:03:00.0\n");
  CHECK(ran.journal.empty());
}

TEST_CASE("simulator shim: the environment chooses the gfx1030 device") {
  const Ran ran = run("facts", "KILN_SIM_TARGET=gfx1030");
  CAPTURE(ran.output, ran.journal);
  CHECK(ran.status == 0);
  CHECK_THAT(ran.output, Catch::Contains("(kiln-simulated gfx1030)") &&
                             Catch::Contains("device 73bf family 143 units 60") &&
                             Catch::Contains("1002:73bf revision c3"));
}

TEST_CASE("simulator shim: an environment that makes no sense leaves a node that cannot be opened") {
  const Ran ran = run("facts", "KILN_SIM_TARGET=gfx906");
  CAPTURE(ran.output, ran.journal);
  CHECK(ran.status != 0);
  CHECK_THAT(ran.output, Catch::Contains("open: Invalid argument"));
  CHECK_THAT(ran.journal, Catch::Contains("KILN_SIM_TARGET: 'gfx906' is none of gfx1100 gfx1030"));
}

TEST_CASE("simulator shim: a packet writes, the host reads, on both rings and both generations") {
  for (const char* target : {"KILN_SIM_TARGET=gfx1100", "KILN_SIM_TARGET=gfx1030"}) {
    const Ran ran = run("write", target);
    CAPTURE(target, ran.output, ran.journal);
    CHECK(ran.status == 0);
    CHECK(ran.output == "read cafe0001\nread cafe0000\n");
    CHECK(ran.journal.empty());
  }
}

TEST_CASE("simulator shim: a stray write makes a reset, and the program can read why") {
  const Ran ran = run("stray");
  CAPTURE(ran.output, ran.journal);
  CHECK(ran.status == 0);
  CHECK_THAT(ran.output, Catch::Contains("job ECANCELED\nflags 5\n") && Catch::Contains("fault unmapped at 0x") &&
                             Catch::Contains("900000000000") &&
                             Catch::EndsWith("\nlength 1\nno room 1 !\nroom 1 1 !\nroom 1 1 !\n"));
  CHECK_THAT(ran.journal, Catch::Contains("reset 1"));
}

TEST_CASE("simulator shim: planted faults reach a program through libdrm") {
  CHECK_THAT(run("write", "KILN_SIM_FAULT=hang@1 KILN_SIM_LOCKUP_MS=5").output,
             Catch::Contains("job: Operation canceled"));
  CHECK_THAT(run("write", "KILN_SIM_FAULT=enomem@1").output, Catch::Contains("job: Cannot allocate memory"));
  CHECK_THAT(run("write", "KILN_SIM_FAULT=unplugged@2").output,
             Catch::Contains("read cafe0001\n") && Catch::Contains("job: No such device"));
}

TEST_CASE("simulator shim: a buffer goes from one opening of the node to another") {
  const Ran ran = run("share");
  CAPTURE(ran.output, ran.journal);
  CHECK(ran.status == 0);
  CHECK(ran.output == "shared 77\n");
}

TEST_CASE("simulator shim: the C library's functions for files see the device's tree") {
  const Ran ran = run("files");
  CAPTURE(ran.journal);
  CHECK(ran.status == 0);
  CHECK(ran.output ==
        "open64 0x1002\nopenat 0x744c\nopenat64 0x1002\n"
        "__open_2 0x030000\n__open64_2 0x030000\n__openat_2 0xc8\n__openat64_2 0xc8\n"
        "fopen 0x0e3b\nfopen 226:128\n"
        "uevent DRIVER=amdgpu\nnone No such file or directory\n"
        "link ../../../devices/pci0000:00/0000:03:00.0 1\n"
        "link ../../../bus/pci 1\nlink ../../../bus/pci/drivers/amdgpu 1\n"
        "link ../../../0000:03:00.0 1\nlink ../../../../../class/drm 1\n"
        "link ../../devices/pci0000:00/0000:03:00.0/drm/renderD128 1\n"
        "link ../../devices/pci0000:00/0000:03:00.0/drm/renderD128 1\n"
        "real /sys/devices/pci0000:00/0000:03:00.0/drm/renderD128\nreal /\n"
        "scan 3 3\nnames renderD128 renderD128\n"
        "access 0 -1 0 -1\n"
        "stat 0 node 226:128\nstat64 0 node 226:128\nlstat 0 link 0:0\nlstat64 0 node 226:128\n"
        "fstatat 0 node 226:128\nfstatat 0 link 0:0\nfstatat64 0 node 226:128\n"
        "fstat 0 node 226:128\nfstat64 0 node 226:128\nfstatat 0 node 226:128\nfstatat64 0 node 226:128\n"
        "stat 0 other 0:0\nfstat 0 other 0:0\n"
        "__xstat 0 node 226:128\n__xstat64 0 node 226:128\n__lxstat 0 node 226:128\n__lxstat64 0 node 226:128\n"
        "__fxstat 0 node 226:128\n__fxstat64 0 node 226:128\n");
}

TEST_CASE("simulator shim: the rest of the tree, and what makes no sense on the node") {
  const std::string folder = "/tmp/kiln-sim-edges-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const Ran ran = run("edges " + folder, "ulimit -S -n 200; TMPDIR=");
  std::filesystem::remove_all(folder);
  CAPTURE(ran.journal);
  CHECK(ran.status == 0);
  CHECK(ran.output == "no fault 0 0 0\nconfig 02104c7400000000c8000003" + std::string(64, '0') + "02103b0e" +
                          std::string(32, '0') +
                          "\nDRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SUBSYS_ID=1002:0E3B\n"
                          "PCI_SLOT_NAME=0000:03:00.0\n"
                          "MAJOR=226\nMINOR=128\nDEVNAME=dri/renderD128\nDEVTYPE=drm_minor\n"
                          "created 100640 100604 100620 100602\n"
                          "no path -1 EFAULT\n"
                          "kept 0 1\n"
                          "node 666 0 666 0\n"
                          "many files 1\n"
                          "mmap 1 EINVAL 0\n"
                          "ioctl -1 EINVAL\nioctl -1 ENOTTY\nioctl -1 ENOTTY\n"
                          "ioctl -1 ENOTTY\nioctl -1 ENOTTY\nioctl -1 ENOTTY\n"
                          "fence 0 1\n"
                          "after a fork 0 0\n");
  CHECK_THAT(ran.journal, Catch::Contains("mapping of the device at 0x0 of 0x1000 bytes: no buffer lies there") &&
                              Catch::Contains("is not known"));
}

TEST_CASE("simulator shim: without a place for its tree the device cannot be looked at, and all else can") {
  const Ran ran = run("lost", "TMPDIR=/no/such/folder");
  CHECK(ran.status == 0);
  CHECK(ran.output == "lost EIO EIO EIO EIO EIO EIO EIO EIO EIO EIO EIO EIO EIO EIO EIO\nothers 0 0\n");
}

TEST_CASE("simulator shim: of what lies beside its tree, it removes the trees of processes that ended") {
  namespace fs = std::filesystem;
  const fs::path folder = "/tmp/kiln-sim-beside-" + std::to_string(::getpid());
  const auto tree = [&](const char* name) {
    fs::create_directories(folder / name / "sys");
    std::ofstream(folder / name / "lock") << "";
  };
  for (const char* name : {"kiln-sim-ended", "kiln-sim-running", "another-tree"}) tree(name);
  fs::create_directories(folder / "kiln-sim-bare" / "sys");
  fs::create_directory_symlink(folder / "another-tree", folder / "kiln-sim-link");
  std::ofstream(folder / "kiln-sim-file") << "";
  const int held = ::open((folder / "kiln-sim-running" / "lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(held >= 0);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  CHECK(run("facts", "TMPDIR=" + folder.string()).status == 0);
  CHECK_FALSE(fs::exists(folder / "kiln-sim-ended"));
  for (const char* name : {"kiln-sim-running", "another-tree", "kiln-sim-bare", "kiln-sim-link"}) {
    CAPTURE(name);
    CHECK(fs::exists(folder / name / "sys"));
  }
  CHECK(fs::exists(folder / "another-tree" / "lock"));
  CHECK(fs::exists(folder / "kiln-sim-file"));
  ::close(held);
  fs::remove_all(folder);
}

TEST_CASE("simulator shim: nothing of the device's tree is left behind") {
  const std::string folder = "/tmp/kiln-sim-tree-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const Ran ran = run("facts", "TMPDIR=" + folder);
  CHECK(ran.status == 0);
  CHECK(std::filesystem::is_empty(folder));
  CHECK(run("abandon", "TMPDIR=" + folder).status == 0);
  CHECK_FALSE(std::filesystem::is_empty(folder));  // the process could not; the next one does
  CHECK(run("facts", "TMPDIR=" + folder).status == 0);
  CHECK(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}
