// Which way bytes take where the settings leave it open: measured once, kept as a note, overruled by the settings.
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "opengl/support/kernels.hpp"
#include "opengl/support/wrapping_egl.hpp"

namespace kiln::support {
namespace {

class Notes final : public DriverNotes {
 public:
  std::optional<std::vector<std::byte>> find(std::string_view name) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto at = notes_.find(std::string(name));
    return at == notes_.end() ? std::nullopt : std::optional(at->second);
  }
  void keep(std::string_view name, std::span<const std::byte> bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    notes_[std::string(name)] = {bytes.begin(), bytes.end()};
  }

  // The one note of how bytes are transferred; empty: there is none.
  std::string transfer() const {
    const auto at = found();
    return at == notes_.end() ? std::string()
                              : std::string(reinterpret_cast<const char*>(at->second.data()), at->second.size());
  }
  void put_transfer(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    notes_.at(found()->first) = {bytes.begin(), bytes.end()};
  }

 private:
  using Kept = std::map<std::string, std::vector<std::byte>>;
  Kept::const_iterator found() const {
    const auto at = notes_.lower_bound("transfer of ");
    return at != notes_.end() && at->first.starts_with("transfer of ") ? at : notes_.end();
  }

  std::mutex mutex_;
  Kept notes_;
};

// The line that tells how long both ways took; empty: there was none.
class TransferLog final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view message) noexcept override {
    const std::lock_guard lock(mutex_);
    if (message.find(": upload and readback take ") != std::string_view::npos) line_ = message;
  }
  std::string line() const {
    const std::lock_guard lock(mutex_);
    return line_;
  }

 private:
  mutable std::mutex mutex_;
  std::string line_;
};

struct Seen {
  bool software = false;  // the device
  bool mapped = false;
  std::size_t copies = 0;  // until the first buffer was made
};

// Opens the device anew, as a later process would, and looks at its first buffer. absent: there is no device.
std::optional<Seen> first_buffer(DriverNotes* notes, const char* mapping = "auto") {
  OpenGl gl({{"egl_library", std::string(KILN_WRAPPING_EGL)}, {"persistent_mapping", std::string(mapping)}});
  if (notes != nullptr) gl.plugin().lend(*notes);
  begin_gl_log();
  if (!gl.usable()) return std::nullopt;
  auto buffer = gl.device().create_buffer({64, BufferUsage::upload, {}, -1});
  REQUIRE(buffer.has_value());
  Seen seen;
  seen.software = gl.device().info().kind == DeviceKind::software;
  seen.mapped = !(*buffer)->mapped().empty();
  for (const GlCall& call : end_gl_log()) seen.copies += call.what == GlCall::What::copied ? 1 : 0;
  return seen;
}

}  // namespace

TEST_CASE("opengl: ways of transfer are compared once for a driver, and the choice is kept", "[opengl][transfer]") {
  Notes notes;
  const auto first = first_buffer(&notes);
  if (!first) return;
  CHECK(first->copies > 0);
  const std::string choice = notes.transfer();
  CHECK((choice == "mapped" || choice == "staged"));
  CHECK(first->mapped == (choice == "mapped"));

  const auto second = first_buffer(&notes);
  CHECK(second->copies == 0);
  CHECK(second->mapped == first->mapped);

  for (const std::string_view word : {"staged", "mapped"}) {  // what is kept decides, whatever it is
    notes.put_transfer(word);
    const auto seen = first_buffer(&notes);
    CHECK(seen->copies == 0);
    CHECK(seen->mapped == (word == "mapped"));
  }

  notes.put_transfer("by pigeon");
  CHECK(first_buffer(&notes)->copies > 0);
  CHECK((notes.transfer() == "mapped" || notes.transfer() == "staged"));
}

TEST_CASE("opengl: the log has both transfer times, and the faster way is chosen", "[opengl][transfer]") {
  constexpr unsigned long long hour_us = 3'600'000'000;
  TransferLog log;
  Notes notes;
  OpenGl gl;
  gl.plugin().lend(notes);
  gl.plugin().listen({&log, LogLevel::info});
  if (!gl.usable()) return;
  REQUIRE(gl.device().create_buffer({64, BufferUsage::upload, {}, -1}).has_value());
  const std::string line = log.line();
  INFO(line);
  const std::size_t at = line.find("1 MiB: upload and readback take ");
  REQUIRE(at != std::string::npos);
  unsigned long long mapped_us = 0, staged_us = 0;
  char word[16] = {};
  const int read =
      std::sscanf(line.c_str() + at, "1 MiB: upload and readback take %llu us mapped and %llu us staged: %15s",
                  &mapped_us, &staged_us, word);
  REQUIRE(read == 3);
  CHECK(mapped_us > 0);
  CHECK(mapped_us < hour_us);
  CHECK(staged_us > 0);
  CHECK(staged_us < hour_us);
  CHECK(std::string(word) == notes.transfer());
  if (2 * mapped_us < staged_us) CHECK(std::string(word) == "mapped");  // clearly, whatever the device is
  if (2 * staged_us < mapped_us) CHECK(std::string(word) == "staged");
}

TEST_CASE("opengl: where a way of transfer cannot be tried, the usual one is used and nothing is stored",
          "[opengl][transfer]") {
  class Warnings final : public LogSink {
   public:
    void write(LogLevel level, std::string_view, std::string_view message) noexcept override {
      const std::lock_guard lock(mutex_);
      if (level == LogLevel::warning) text_ += std::string(message) + "\n";
    }
    std::string text() const {
      const std::lock_guard lock(mutex_);
      return text_;
    }

   private:
    mutable std::mutex mutex_;
    std::string text_;
  };
  const std::string buffer = "opengl:0: making a buffer of 1048576 bytes: the buffer cannot be mapped";
  const std::string memory =
      "opengl:0: making the staging memory of a buffer of 1048576 bytes: the memory cannot be mapped";
  const std::string reasons[] = {buffer, buffer, memory, memory};  // one for each mapping of the comparison
  for (int failing = 1; failing <= 4; ++failing) {
    INFO("mapping " << failing);
    Notes notes;
    Warnings warnings;
    OpenGl gl(with_wrapping_egl());
    gl.plugin().lend(notes);
    gl.plugin().listen({&warnings, LogLevel::warning});
    if (!gl.usable()) return;
    Device& device = gl.device();
    egl_switches().map_to_fail = failing;
    const auto made = device.create_buffer({64, BufferUsage::upload, {}, -1});
    egl_switches().map_to_fail = 0;
    REQUIRE(made.has_value());
    CHECK((*made)->mapped().empty() == (device.info().kind != DeviceKind::software));
    CHECK_THAT(warnings.text(), Catch::Contains("transfer modes were not compared: " + reasons[failing - 1] + "\n"));
    CHECK(notes.transfer() == "");
  }
}

TEST_CASE("opengl: the settings overrule what was kept, and nothing is compared for them", "[opengl][transfer]") {
  for (const bool always : {true, false}) {
    Notes notes;
    const auto first = first_buffer(&notes, always ? "always" : "staging");
    if (!first) return;
    CHECK(first->mapped == always);
    CHECK(first->copies == 0);
    CHECK(notes.transfer() == "");
  }
  Notes notes;
  if (!first_buffer(&notes)) return;
  notes.put_transfer("mapped");
  CHECK_FALSE(first_buffer(&notes, "staging")->mapped);
  notes.put_transfer("staged");
  CHECK(first_buffer(&notes, "always")->mapped);
}

TEST_CASE("opengl: where no notes can be kept nothing is compared", "[opengl][transfer]") {
  const auto seen = first_buffer(nullptr);
  if (!seen) return;
  CHECK(seen->copies == 0);
  CHECK(seen->mapped == seen->software);
}

}  // namespace kiln::support
