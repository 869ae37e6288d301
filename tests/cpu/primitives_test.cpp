#include "onednn/primitives.hpp"

#include <catch2/catch.hpp>

#include <cstring>

#include "onednn/worker_pool.hpp"

namespace kiln::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto f32 = dnnl::memory::data_type::f32;

}  // namespace

TEST_CASE("a constant packed in pieces is the constant packed at once, padding too") {
  const OmpAlone alone;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  WorkerPool pool(3);
  const struct {
    Desc given, wanted;
  } cases[] = {{Desc({700, 500}, f32, Tag::ab), Desc({700, 500}, f32, Tag::ab)},
               {Desc({700, 500}, f32, Tag::ab), Desc({700, 500}, f32, Tag::BA16a64b)},
               {Desc({500, 701}, f32, Tag::ba), Desc({500, 701}, f32, Tag::BA16a32b)},
               {Desc({203, 150, 3, 3}, f32, Tag::oihw), Desc({203, 150, 3, 3}, f32, Tag::OIhw16i16o)},
               {Desc({60, 700, 3, 3}, f32, Tag::oihw), Desc({60, 700, 3, 3}, f32, Tag::OIhw8i8o)},
               {Desc({3, 3}, f32, Tag::ab), Desc({3, 3}, f32, Tag::ba)}};
  for (const auto& [given, wanted] : cases) {
    std::vector<float> values(given.get_size() / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
    dnnl::memory from(given, engine, values.data());
    dnnl::memory expected(wanted, engine), packed(wanted, engine);
    std::memset(expected.get_data_handle(), 0xFF, wanted.get_size());
    std::memset(packed.get_data_handle(), 0xFF, wanted.get_size());
    dnnl::reorder(from, expected).execute(stream, from, expected);
    stream.wait();
    pack(from, packed, pool, stream);
    INFO(wanted.dims()[0] << " x " << wanted.dims()[1] << ", " << wanted.get_size() << " bytes");
    CHECK(std::memcmp(expected.get_data_handle(), packed.get_data_handle(), wanted.get_size()) == 0);
  }
}

}  // namespace kiln::cpu
