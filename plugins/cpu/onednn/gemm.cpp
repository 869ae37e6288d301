#include "onednn/candidate.hpp"

#include "onednn/primitives.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace kiln::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto f32 = dnnl::memory::data_type::f32;

// Boundaries of blocks: whole steps of the library's own loops.
constexpr std::int64_t row_unit = 4;
constexpr std::int64_t column_unit = 64;
// Fewer rows than that for each thread make the library read B more often than it computes with it.
constexpr std::int64_t few_rows = 16;

// packed: B in the layout that the library likes best. plain: B as it lies. inner_product: the same product as a fully
// connected layer, for which oneDNN has other code.
enum class Form : std::uint8_t { invalid = 0, packed, plain, inner_product };

constexpr const char* name_of(Form form) {
  return form == Form::packed ? "packed" : form == Form::plain ? "plain" : "inner product";
}

// A block of C, from the same rows of A and the same columns of B.
struct Block {
  Range rows, columns;
};
using Blocks = std::vector<Block>;

std::uint64_t bytes_of(std::int64_t elements) { return static_cast<std::uint64_t>(elements) * sizeof(float); }

// A matrix whose rows lie `step` apart. A single row says nothing of that, and the library has more code for it so.
Desc rows_of(std::int64_t rows, std::int64_t columns, std::int64_t step) {
  return Desc({rows, columns}, f32, dnnl::memory::dims{rows == 1 ? columns : step, 1});
}

// One block by one of the ways, its operands where they lie.
class Maker {
 public:
  Maker(const GemmSpec& spec, const dnnl::engine& engine, const Block& block)
      : spec_(spec),
        engine_(engine),
        m_(block.rows.size()),
        n_(block.columns.size()),
        input_{DNNL_ARG_SRC, Place::input, rows_of(m_, spec.k, spec.k), bytes_of(block.rows.begin * spec.k)},
        output_{DNNL_ARG_DST, Place::output, rows_of(m_, n_, spec.n),
                bytes_of(block.rows.begin * spec.n + block.columns.begin)},
        columns_offset_(bytes_of(block.columns.begin)) {}

  std::optional<Made> make(Form form) && {
    const bool dense = n_ == spec_.n || m_ == 1;
    // The library's better code wants results whose rows follow one another; they are few where columns are cut.
    const bool copied = !dense && form != Form::plain;
    Pipeline::Operand result = copied ? pipeline_.reserve(rows_of(m_, n_, n_)) : output_;
    result.argument = DNNL_ARG_DST;
    auto implementation = form == Form::inner_product ? inner_product(result) : matmul(form, result);
    if (!implementation) return std::nullopt;
    if (copied) pipeline_.add_reorder(engine_, result, output_);
    return Made{*implementation, std::move(pipeline_)};
  }

 private:
  std::optional<std::string> matmul(Form form, const Pipeline::Operand& result) {
    const Desc lies({spec_.k, n_}, f32, dnnl::memory::dims{spec_.n, 1});
    const Desc asked = form == Form::packed ? Desc({spec_.k, n_}, f32, Tag::any) : lies;
    const Desc bias = spec_.bias == Bias::none ? Desc() : Desc({1, n_}, f32, Tag::ab);
    const dnnl::matmul::primitive_desc described({input_.desc, asked, bias, result.desc},
                                                 attributes_of(spec_.activation), engine_, true);
    if (!described) return std::nullopt;
    add(dnnl::matmul(described), described, lies, bias, result);
    return described.impl_info_str();
  }

  std::optional<std::string> inner_product(const Pipeline::Operand& result) {
    const Desc lies({n_, spec_.k}, f32, dnnl::memory::dims{1, spec_.n});  // B seen transposed
    const Desc asked({n_, spec_.k}, f32, Tag::any);
    const Desc bias = spec_.bias == Bias::none ? Desc() : Desc({n_}, f32, Tag::a);
    const dnnl::inner_product_forward::primitive_desc described(
        {dnnl::prop_kind::forward_inference, input_.desc, asked, bias, result.desc}, attributes_of(spec_.activation),
        engine_, true);
    if (!described) return std::nullopt;
    add(dnnl::inner_product_forward(described), described, lies, bias, result);
    return described.impl_info_str();
  }

  template <class Described>
  void add(const dnnl::primitive& primitive, const Described& described, const Desc& lies, const Desc& bias,
           const Pipeline::Operand& result) {
    pipeline_.set_constant({lies, described.weights_desc(), columns_offset_});
    pipeline_.add(primitive, engine_, described.scratchpad_desc(),
                  {input_,
                   {DNNL_ARG_WEIGHTS, Place::constant, described.weights_desc()},
                   {DNNL_ARG_BIAS, Place::bias, bias, columns_offset_},
                   result});
  }

  const GemmSpec& spec_;
  const dnnl::engine& engine_;
  std::int64_t m_, n_;
  Pipeline::Operand input_, output_;
  std::uint64_t columns_offset_;
  Pipeline pipeline_;
};

// About `wanted` blocks, along the rows first or along the columns.
Blocks blocks_of(const GemmSpec& spec, bool rows_first, std::int64_t wanted) {
  const Axis rows{spec.m, row_unit, 1};
  const Axis columns{spec.n, column_unit, 1};
  std::vector<std::int64_t> counts =
      share(rows_first ? std::vector{rows, columns} : std::vector{columns, rows}, wanted);
  if (!rows_first) std::swap(counts[0], counts[1]);
  Blocks blocks;
  for (const Range& some_rows : split(spec.m, counts[0], row_unit)) {
    for (const Range& some_columns : split(spec.n, counts[1], column_unit)) {
      blocks.push_back({some_rows, some_columns});
    }
  }
  return blocks;
}

// "4x2 blocks by rows and columns".
std::string in_words(const Blocks& blocks) {
  const auto across = std::ranges::count_if(blocks, [](const Block& block) { return block.rows.begin == 0; });
  const auto down = static_cast<std::ptrdiff_t>(blocks.size()) / across;
  if (across == 1) return std::to_string(down) + " blocks by rows";
  if (down == 1) return std::to_string(across) + " blocks by columns";
  return std::to_string(down) + "x" + std::to_string(across) + " blocks by rows and columns";
}

class Collector {
 public:
  Collector(const GemmSpec& spec, const dnnl::engine& engine) : spec_(spec), engine_(engine) {}

  void add(Form form, const Blocks& blocks) {
    std::vector<Pipeline> tiles;
    std::string name;
    for (const Block& block : blocks) {
      auto made = Maker(spec_, engine_, block).make(form);
      if (!made || (is_reference(*made) && !references_allowed_)) return;
      if (tiles.empty()) name = std::string(name_of(form)) + " " + made->implementation;
      tiles.push_back(std::move(made->pipeline));
    }
    if (tiles.size() > 1) name += ", " + in_words(blocks);
    if (names_.insert(name).second) candidates_.emplace_back(name, std::move(tiles));
  }
  void add(const Blocks& blocks) {
    for (const Form form : {Form::packed, Form::plain, Form::inner_product}) add(form, blocks);
  }
  // Where there is nothing else.
  void allow_reference() noexcept { references_allowed_ = true; }

  bool empty() const noexcept { return candidates_.empty(); }
  std::vector<Candidate> take() noexcept { return std::move(candidates_); }

 private:
  const GemmSpec& spec_;
  const dnnl::engine& engine_;
  std::vector<Candidate> candidates_;
  std::set<std::string> names_;
  bool references_allowed_ = false;
};

}  // namespace

std::vector<Candidate> gemm_candidates(const GemmSpec& spec, const dnnl::engine& engine, int threads) {
  Collector collector(spec, engine);
  const Blocks alone = blocks_of(spec, true, 1);
  if (threads == 1 || flops(spec) <= small_flops) collector.add(alone);
  if (threads > 1) {
    const bool rows_first = spec.m >= few_rows * threads;
    const Blocks blocks = blocks_of(spec, rows_first, threads);
    const Blocks others = blocks_of(spec, !rows_first, threads);
    // Smaller ones, of which a thread that is held up leaves some to the others.
    const Blocks smaller = blocks_of(spec, rows_first, std::int64_t{2} * threads);
    // For columns of B as it lies the library makes code when it first runs, which takes most of the time that a choice
    // has: so that comes last.
    for (const Form form : {Form::packed, Form::inner_product, Form::plain}) {
      for (const Blocks* shared : {&blocks, &others, &smaller}) {
        if (shared->size() > 1) collector.add(form, *shared);
      }
    }
  }
  if (collector.empty()) collector.add(alone);
  if (collector.empty()) {
    collector.allow_reference();
    collector.add(alone);
  }
  if (collector.empty()) throw dnnl::error(dnnl_unimplemented, "no implementation of this gemm");
  return collector.take();
}

}  // namespace kiln::cpu
