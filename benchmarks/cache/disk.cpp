// What the disk tier costs beside files that are only read: opening a cache of 10,000 programs, a disk hit of an 8 KB
// program (read, authenticated, inflated, compared), and a put.
//
//   cache_disk [ENTRIES [FOLDER]] [--figures FILE]         10000, and a temporary folder that is removed; FOLDER is
//   kept cache_disk open FOLDER                one opening and one hit in a kept folder, for counting system calls
//
// "disk hit" is the whole of get_or_build: the hit proper (its part, the next line), marks, the device, what memory
// does. The programs are what this machine's OpenGL driver makes of 64 compute shaders. The device's codec costs
// nothing but the comparison of what it is given with what was stored, for every hit. Each round asks a cache just
// opened for each program once, so that no hit is memory's. Figures are over five rounds: the median of the rounds' p50
// and p99, and the least and greatest p50. Files are in the page cache.
#include "base/digest.hpp"
#include "cache/disk_tier.hpp"
#include "cache/entry_format.hpp"
#include "cache/tiered_cache.hpp"
#include "figures.hpp"

#include "opengl/adopt/own_context.hpp"

#include <kiln/adopted_gl.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kiln;
namespace fs = std::filesystem;

constexpr std::size_t kinds = 64;  // different programs; the others repeat their bytes under keys of their own
constexpr int rounds = 5;

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "cache_disk: %s\n", why.c_str());
  std::exit(1);
}

// A compute shader whose program binary has about 8 KB on Mesa.
std::string shader(std::size_t number) {
  std::string text =
      "#version 430 core\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer Input { float from[]; };\n"
      "layout(std430, binding = 1) buffer Output { float to[]; };\n"
      "void main() {\n"
      "  uint at = gl_GlobalInvocationID.x;\n"
      "  float sum = 0.0;\n";
  for (std::size_t i = 0; i < 45; ++i) {
    const std::string step = std::to_string((number * 7 + i * 13) % 97 + 1);
    text += "  sum += from[at + " + step + "u] * from[at * " + step + "u] + " + step + ".5;\n";
  }
  return text + "  to[at] = sum;\n}\n";
}

// What the driver of this machine makes of them.
std::vector<std::vector<std::byte>> program_binaries() {
  const test::OwnContext context;
  if (!context.usable()) die("there is no OpenGL here to make programs with");
  auto gl = AdoptedGl::adopt(test::find_gl);
  if (!gl) die(gl.error().text());
  std::vector<std::vector<std::byte>> binaries;
  for (std::size_t number = 0; number < kinds; ++number) {
    KernelSource source;
    source.dialect = Dialect::glsl;
    source.text = shader(number);
    const auto program = (*gl)->device().build(source);
    if (!program) die(program.error().text());
    auto binary = (*gl)->device().serialize(**program);
    if (!binary) die(binary.error().text());
    binaries.push_back(std::move(binary->bytes));
  }
  return binaries;
}

KernelSource source_of(std::size_t number) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::to_string(number) + " // which of the programs\n" + shader(number % kinds);
  return source;
}

class FreeProgram final : public Program {
 public:
  std::uint64_t charge() const noexcept override { return 1; }
};

// Its binaries are the prepared payloads; what it is given must be the one of the source's number.
class FreeDevice final : public Device {
 public:
  explicit FreeDevice(const std::vector<std::vector<std::byte>>& payloads) : payloads_(payloads) {
    info_.id = "free:0";
    info_.name = "Free (benchmark)";
    info_.usable = true;
    info_.device_identity = {{"vendor", "Kiln"}, {"renderer", "Free"}};
    info_.driver_identity = {{"version", "1.0"}};
    info_.serializes = true;
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override {
    built_ = number_of(source);
    return std::unique_ptr<Program>(std::make_unique<FreeProgram>());
  }
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override {
    const auto& expected = payloads_[number_of(source) % payloads_.size()];
    if (binary.bytes != expected) die("a hit answered other bytes than were stored");
    ++compared;
    return std::unique_ptr<Program>(std::make_unique<FreeProgram>());
  }
  Result<ProgramBinary> serialize(const Program&) noexcept override {
    return ProgramBinary{"free:1", payloads_[built_ % payloads_.size()]};
  }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc&) noexcept override { return unsupported("buffers"); }
  Result<std::uint64_t> submit(const Dispatch&) noexcept override { return unsupported("a queue"); }
  Result<FenceResult> wait(std::uint64_t, Deadline) noexcept override { return unsupported("a queue"); }

  std::uint64_t compared = 0;  // hits whose bytes were the stored ones

 private:
  static std::size_t number_of(const KernelSource& source) noexcept {
    std::size_t number = 0;
    std::from_chars(source.text.data(), source.text.data() + source.text.size(), number);
    return number;
  }
  const std::vector<std::vector<std::byte>>& payloads_;
  DeviceInfo info_;
  std::size_t built_ = 0;
};

struct Figures {
  std::vector<double> p50, p99;

  void add(std::vector<double> micros) {
    std::sort(micros.begin(), micros.end());
    p50.push_back(micros[micros.size() / 2]);
    p99.push_back(micros[micros.size() * 99 / 100]);
  }
  void print(const char* what) {
    std::sort(p50.begin(), p50.end());
    std::sort(p99.begin(), p99.end());
    std::printf("%-52s %9.2f %9.2f   %.2f to %.2f\n", what, p50[p50.size() / 2], p99[p99.size() / 2], p50.front(),
                p50.back());
  }
};

double micros_of(const std::function<void()>& work) {
  const std::uint64_t start = now_ns();
  work();
  return static_cast<double>(now_ns() - start) / 1e3;
}

std::vector<double> measure(
    const char* what, std::size_t times, const std::function<void(std::size_t)>& work,
    const std::function<void()>& before_a_round = [] {}) {
  Figures figures;
  for (int round = 0; round < rounds; ++round) {
    before_a_round();
    std::vector<double> micros;
    for (std::size_t i = 0; i < times; ++i) micros.push_back(micros_of([&] { work(i); }));
    figures.add(std::move(micros));
  }
  figures.print(what);
  return figures.p50;
}

struct Corpus {
  std::vector<std::vector<std::byte>> payloads;  // program n's is n modulo their count
  std::vector<std::size_t> order;                // in which programs are asked for
  FreeDevice device{payloads};
  CacheConfig config;

  Corpus(std::size_t entries, const fs::path& folder) {
    payloads = program_binaries();
    for (std::size_t i = 0; i < entries; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    config.directory = folder / "cache";
    config.key_file = folder / "key";
    config.max_programs = 2 * entries;
    config.max_memory = 1u << 30;
  }
  std::unique_ptr<ProgramCache> open() {
    auto cache = TieredCache::create({{}, config});
    if (!cache) die(cache.error().text());
    return std::move(cache).value();
  }
  const std::vector<std::byte>& payload(std::size_t at) const { return payloads[order[at] % payloads.size()]; }
  // The key and source of one request, made outside the clock.
  struct Request {
    KernelSource source;
    ProgramKey key;
  };
  Request request(std::size_t at) const {
    KernelSource source = source_of(order[at % order.size()]);
    ProgramKey key = key_of(source, device.info(), "bench");
    return {std::move(source), std::move(key)};
  }
  void expect(ProgramCache& cache, const Request& request, Tier tier) {
    const auto acquired = cache.get_or_build(request.key, request.source, device);
    if (!acquired) die(acquired.error().text());
    if (acquired->tier != tier) die("answered by " + std::string(to_string(acquired->tier)));
  }
};

fs::path file_of(const Corpus& corpus, const Digest& digest) {
  const std::string hex = digest.hex();
  for (const auto& entry : fs::directory_iterator(corpus.config.directory)) {
    const fs::path file = entry.path() / hex.substr(0, 2) / (hex + ".bin");
    if (fs::exists(file)) return file;
  }
  die("no file of " + hex);
}

std::vector<std::byte> plain_read(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat at {};
  if (file < 0 || fstat(file, &at) != 0) die("cannot open " + path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(at.st_size));
  if (read(file, bytes.data(), bytes.size()) != at.st_size) die("cannot read " + path);
  close(file);
  return bytes;
}

void tell(bench::FigureFile& file, const char* id, const char* name, std::vector<double> micros, double goal,
          const std::vector<double>* plain) {
  bench::Figure figure;
  figure.id = std::string("cache.disk.") + id;
  figure.name = name;
  figure.unit = "us";
  figure.kiln = std::move(micros);
  if (plain != nullptr) figure.peer = bench::Peer{"the same file opened, read, closed", *plain};
  if (goal > 0) figure.target = bench::Target{bench::Target::Of::kiln, goal};
  figure.verified = true;  // another answer ends the program
  file.add(std::move(figure));
}

void measure_puts(Corpus& corpus, std::size_t entries, bench::FigureFile& file) {
  const auto cache = corpus.open();
  std::vector<double> micros;
  for (std::size_t i = 0; i < entries; ++i) {
    const auto request = corpus.request(i);
    micros.push_back(micros_of([&] { corpus.expect(*cache, request, Tier::built); }));
  }
  Figures figures;  // five parts of the one filling
  const std::size_t part = micros.size() / rounds;
  for (int round = 0; round < rounds; ++round) {
    const auto from = micros.begin() + static_cast<std::ptrdiff_t>(part) * round;
    figures.add({from, from + static_cast<std::ptrdiff_t>(part)});
  }
  figures.print("put: program and its .meta");
  tell(file, "put", "a program stored, p50", figures.p50, 0, nullptr);
}

void measure_opening(Corpus& corpus, bench::FigureFile& file) {
  const auto request = corpus.request(0);
  const auto micros = measure("opening, up to the first disk hit", 100, [&](std::size_t) {
    const auto cache = corpus.open();
    corpus.expect(*cache, request, Tier::disk);
  });
  tell(file, "opening", "opening the cache, up to the first disk hit, p50", micros, 5000, nullptr);
}

void measure_hits(Corpus& corpus, bench::FigureFile& file) {
  const std::size_t asked = std::min<std::size_t>(corpus.order.size() - 1, 2000);
  std::vector<Corpus::Request> requests;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < asked; ++i) {
    requests.push_back(corpus.request(i));
    paths.push_back(file_of(corpus, requests.back().key.digest));
  }
  std::unique_ptr<ProgramCache> cache;
  const auto reopen = [&] {  // so that memory has none of them; the first hit pays the opening
    cache.reset();
    cache = corpus.open();
    corpus.expect(*cache, corpus.request(asked), Tier::disk);
  };
  const auto hit = [&](std::size_t i) { corpus.expect(*cache, requests[i], Tier::disk); };
  const auto whole = measure("disk hit", asked, hit, reopen);
  corpus.config.read_only = true;
  measure("disk hit, read_only (no mark while loading)", asked, hit, reopen);
  CacheCounters counters;
  DiskTier tier({}, corpus.config, counters);
  const auto proper = measure("its part: read, authenticated, inflated, compared", asked, [&](std::size_t i) {
    const Lookup found = tier.find(requests[i].key, corpus.device);
    if (!found.stored || found.stored->binary.bytes != corpus.payload(i))
      die("a hit answered other bytes than were stored");
    ++corpus.device.compared;
  });
  std::size_t read_bytes = 0;
  const auto plain = measure("peer: the same file opened, read, closed", asked,
                             [&](std::size_t i) { read_bytes += plain_read(paths[i]).size(); });
  tell(file, "hit/read", "a disk hit, all of get_or_build, p50", whole, 0, &plain);
  tell(file, "hit_proper/read", "its part: read, authenticated, inflated, compared, p50", proper, 15, &plain);

  Inflaters inflaters;
  SecretKey secret{};
  const EntryKey key(secret);
  const std::vector<std::byte> bytes = plain_read(paths[0]);
  EntryView view;
  view.format = "free:1";
  view.material = requests[0].key.material;
  const std::vector<std::byte> payload = encode_payload({"free:1", corpus.payload(0)});
  view.stored = payload;
  view.compression = Compression::zstd;
  const auto encoded = encode_entry(view, key);
  if (!encoded || encoded->size() != bytes.size()) die("the entry on disk has not the size of its encoding");
  const DecodedEntry decoded = decode_entry(*encoded, key);
  if (decoded.rejection != Rejection::none) die(decoded.why);
  std::printf("  an entry has %zu bytes: %zu of key material, %zu stored of %zu (%.1fx)\n", bytes.size(),
              view.material.size(), decoded.entry.stored.size(), view.stored.size(),
              static_cast<double>(view.stored.size()) / static_cast<double>(decoded.entry.stored.size()));
  std::size_t sink = read_bytes;
  measure("  share: XXH3-128", asked, [&](std::size_t) { sink += static_cast<std::size_t>(xxh3_128(*encoded)[0]); });
  measure("  share: HMAC-SHA256", asked, [&](std::size_t) { sink += key.hmac.of(*encoded).bytes[0]; });
  measure("  share: decode_entry, both of these", asked,
          [&](std::size_t) { sink += decode_entry(*encoded, key).entry.stored.size(); });
  measure("  share: inflating", asked, [&](std::size_t) { sink += inflate_payload(decoded.entry, inflaters)->size(); });
  if (sink == 0) die("nothing was read");
}

}  // namespace

int main(int argc, char** argv) try {
  auto file = bench::FigureFile::of_words(argc, argv);
  const bool one_opening = argc == 3 && std::strcmp(argv[1], "open") == 0;
  const std::size_t entries = one_opening ? 1 : argc < 2 ? 10000 : std::strtoul(argv[1], nullptr, 10);
  std::string folder = argc > 2 ? argv[2] : (fs::temp_directory_path() / "kiln-disk-XXXXXX").string();
  if (entries < 500 && !one_opening) die("ENTRIES is at least 500");
  if (argc <= 2 && mkdtemp(folder.data()) == nullptr) die("no temporary folder");
  Corpus corpus(entries, fs::absolute(folder));
  if (one_opening) {
    corpus.config.read_only = true;
    const auto request = corpus.request(0);
    const double micros = micros_of([&] { corpus.expect(*corpus.open(), request, Tier::disk); });
    std::printf("opening, up to the first disk hit: %.0f us\n", micros);
    return 0;
  }
  std::printf("%zu programs, microseconds %34s %9s   p50 of the rounds\n", entries, "p50", "p99");
  measure_puts(corpus, entries, file);
  measure_opening(corpus, file);
  measure_hits(corpus, file);
  std::printf("%llu hits compared\n", static_cast<unsigned long long>(corpus.device.compared));
  if (argc <= 2) fs::remove_all(folder);
  file.write();
  return 0;
} catch (const std::exception& error) {
  die(error.what());
}
