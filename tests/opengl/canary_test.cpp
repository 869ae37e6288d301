// The canary: its binary is kept as a note and believed only if the driver takes it.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "codec/context.hpp"
#include "opengl/support/kernels.hpp"

namespace kiln::support {
namespace {

class NotesInMemory final : public DriverNotes {
 public:
  std::optional<std::vector<std::byte>> find(std::string_view name) noexcept override {
    const auto at = notes.find(std::string(name));
    if (at == notes.end()) return std::nullopt;
    ++found;
    return at->second;
  }
  void keep(std::string_view name, std::span<const std::byte> bytes) noexcept override {
    ++kept;
    notes[std::string(name)].assign(bytes.begin(), bytes.end());
  }
  std::map<std::string, std::vector<std::byte>> notes;
  int found = 0;
  int kept = 0;
};

using Identity = std::vector<std::pair<std::string, std::string>>;

Identity identity_with(DriverNotes& notes) {
  OpenGl gl;
  gl.plugin().lend(notes);
  if (!gl.usable()) return {};
  return gl.device().info().driver_identity;
}

}  // namespace

TEST_CASE("opengl: a kept canary gives the identity that a built one gives", "[opengl][driver]") {
  NotesInMemory notes;
  const Identity built = identity_with(notes);
  if (built.empty() || notes.kept == 0) return;  // no device, or a driver without binaries
  CHECK(notes.kept == 1);
  CHECK(identity_with(notes) == built);
  CHECK(notes.found == 1);
  CHECK(notes.kept == 1);
}

TEST_CASE("opengl: a kept canary that the driver refuses is built anew", "[opengl][driver]") {
  NotesInMemory notes;
  const Identity built = identity_with(notes);
  if (built.empty() || notes.kept == 0) return;
  std::vector<std::byte>& note = notes.notes.begin()->second;
  SECTION("another driver's checksum") { note[4 + 4] ^= std::byte{1}; }
  SECTION("another format") { note[0] ^= std::byte{1}; }
  SECTION("nothing behind the format") { note.resize(4); }
  SECTION("no format") { note.resize(1); }
  CHECK(identity_with(notes) == built);
  CHECK(notes.kept == 2);
}

TEST_CASE("opengl: a context that is lost while a kept canary is offered is not asked for its errors for ever",
          "[opengl][driver]") {
  static int asked = 0;
  asked = 0;
  opengl::Gl gl{};
  gl.CreateProgram = []() -> GLuint { return 1; };
  gl.ProgramBinary = [](GLuint, GLenum, const void*, GLsizei) {};
  gl.GetProgramiv = [](GLuint, GLenum, GLint* value) { *value = GL_TRUE; };
  gl.DeleteProgram = [](GLuint) {};
  gl.GetError = []() -> GLenum { return ++asked < 1000 ? GL_CONTEXT_LOST : GL_NO_ERROR; };
  NotesInMemory notes;
  constexpr GLenum format = 0x875f;
  const std::byte note[] = {std::byte{0x5f}, std::byte{0x87}, {}, {}, std::byte{1}};  // the format and a binary
  notes.keep("canary of a driver", note);
  CHECK(opengl::read_canary(gl, {format}, "a driver", &notes).binary.size() == 1);
  CHECK(asked < 100);
}

}  // namespace kiln::support
