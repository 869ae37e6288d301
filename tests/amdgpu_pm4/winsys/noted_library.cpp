// A library with ELF notes one behind the other, each padded to four bytes, of which the last one is the build-id; or,
// with NOTED_WITHOUT_BUILD_ID, none is. The linker adds no build-id of its own.
#include <cstddef>
#include <cstdint>

namespace {

template <std::size_t OwnerBytes, std::size_t ContentBytes>
struct Note {
  std::uint32_t owner_bytes;
  std::uint32_t content_bytes;
  std::uint32_t type;
  char owner[(OwnerBytes + 3) / 4 * 4];
  std::uint8_t content[(ContentBytes + 3) / 4 * 4];
};

struct Notes {
  Note<5, 3> of_kiln;
  Note<4, 8> of_gnu;      // of another type
  Note<4, 4> of_another;  // of the build-id's type, but another owner
  Note<4, 7> build_id;
};
static_assert(sizeof(Notes) == (12 + 8 + 4) + (12 + 4 + 8) + (12 + 4 + 4) + (12 + 4 + 8));

constexpr std::uint32_t gold_version = 4, build_id_type = 3;
#ifdef NOTED_WITHOUT_BUILD_ID
constexpr std::uint32_t last_type = gold_version;
#else
constexpr std::uint32_t last_type = build_id_type;
#endif

}  // namespace

__attribute__((section(".note.kiln"), used, aligned(4))) static const Notes notes = {
    {5, 3, 1, "Kiln", {0xA1, 0xA2, 0xA3}},
    {4, 8, gold_version, "GNU", {0xB1, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8}},
    {4, 4, build_id_type, "XYZ", {0xC1, 0xC2, 0xC3, 0xC4}},
    {4, 7, last_type, "GNU", {0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD}}};

extern "C" __attribute__((visibility("default"))) int kiln_noted_function() { return 0; }
