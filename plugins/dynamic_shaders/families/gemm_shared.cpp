#include "dynamic_shaders/families/gemm.hpp"

#include <algorithm>
#include <limits>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/shared_tile.hpp"
#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::string_view family = "gemm/shared:";

Status does_not_fit(const std::string& what) { return unsupported("gemm/shared: " + what); }

// Vectors from one depth to the next: one more than the tile has, since neighbouring lanes store neighbouring depths of
// the same rows, which would otherwise meet in one bank of the memory.
std::int64_t vector_row(const GemmTile& tile) noexcept { return tile.tile_rows() / 4 + 1; }

Triple grid_of(const GemmSpec& spec, const GemmTile& tile) noexcept {
  return tile_grid(spec, tile.tile_rows(), tile.tile_columns());
}

class GemmSharedText {
 public:
  GemmSharedText(const GemmSpec& spec, const GemmTile& tile, const SumPart& part, const Form& form)
      : spec_(spec),
        t_(tile),
        part_(part),
        staged_{"part_b",      "part_a",     "lane_c",     "lane_r",         tile.columns,
                tile.rows / 4, tile.lanes_c, tile.lanes_r, vector_row(tile), tile.depth},
        bias_(spec.bias == Bias::per_channel),
        writer_(form, "gemm/shared: each lane adds up " + text_of(tile.rows) + " rows of " + text_of(tile.columns) +
                          " columns"),
        text_(writer_.body()) {
    writer_.bind("a", Element::scalar, Access::read, {BindingSource::tensor, 0});
    writer_.bind("b", Element::scalar, Access::read, {BindingSource::tensor, 1});
    if (bias_ && part_.ends) writer_.bind("bias", Element::scalar, Access::read, {BindingSource::tensor, 2});
    writer_.bind("c", Element::scalar, part_.begins ? Access::write : Access::read_write,
                 {BindingSource::tensor, bias_ ? 3u : 2u});
    writer_.share("part_b", Element::scalar, t_.depth * staged_.float_row());
    writer_.share("part_a", Element::vector, t_.depth * staged_.vector_row);
  }

  Pass write() {
    write_places();
    write_first_sums();
    text_.open("for (int step = ", number("first_step", part_.first), "; step < ", number("end_step", part_.last),
               "; ++step)");
    text_.line(writer_.barrier());
    stage_floats(writer_, staged_, "k", [this](std::int64_t p) { return second_factor(p); });
    stage_rows();
    text_.line(writer_.barrier());
    multiply_staged(writer_, staged_);
    text_.close();
    for (std::int64_t p = 0; p < t_.columns; ++p) write_column(p);
    return writer_.take({static_cast<std::uint32_t>(t_.lanes()), 1, 1}, narrow(grid_of(spec_, t_)));
  }

 private:
  bool spare_rows() const { return writer_.any_shape() || spec_.m % t_.tile_rows() != 0; }
  bool spare_columns() const { return writer_.any_shape() || spec_.n % t_.tile_columns() != 0; }
  bool spare_depth() const { return writer_.any_shape() || spec_.k % t_.depth != 0; }
  std::int64_t texels() const { return t_.depth * t_.tile_rows() / 4; }  // of the first factor, in a step
  std::string number(const char* what, std::int64_t value, std::int64_t factor = 1) {
    return writer_.number(what, value, factor);
  }
  std::string row_there(const std::string& row) { return spare_rows() ? row + " < " + number("rows", spec_.m) : ""; }
  std::string column_there(std::int64_t p) {
    return spare_columns() ? "column" + text_of(p) + " < " + number("columns", spec_.n) : "";
  }
  std::string depth_there() { return spare_depth() ? "k < " + number("depth", spec_.k) : ""; }
  static std::string both(const std::string& one, const std::string& other) {
    return one.empty() || other.empty() ? one + other : one + " && " + other;
  }
  std::string or_zero(const std::string& condition, const std::string& value) const {
    return condition.empty() ? value : condition + " ? " + value + " : " + writer_.zero();
  }
  static std::string there_or_always(const std::string& condition) {
    return condition.empty() ? "{" : "if (" + condition + ") {";
  }

  void write_places() {
    text_.line("int lane = ", writer_.lane(0), ";");
    text_.line("int lane_c = lane % ", t_.lanes_c, ";");
    text_.line("int lane_r = lane / ", t_.lanes_c, ";");
    text_.line("int first_row = ", writer_.group(1), " * ", t_.tile_rows(), ";");
    text_.line("int row = first_row + lane_r * ", t_.rows, ";");
    for (std::int64_t p = 0; p < t_.columns; ++p) {
      text_.line("int column", p, " = ", writer_.group(0), " * ", t_.tile_columns(), " + ", p * t_.lanes_c,
                 " + lane_c;");
      text_.line("int to", p, " = row * ", number("columns", spec_.n), " + column", p, ";");
    }
    // Neighbouring lanes load neighbouring depths of the first factor, which lie side by side.
    for (std::int64_t first = 0, i = 0; first < texels(); first += t_.lanes(), ++i) {
      text_.line("int deep", i, " = (lane + ", first, ") % ", t_.depth, ";");
      text_.line("int quad", i, " = (lane + ", first, ") / ", t_.depth, ";");
      text_.line("int from", i, " = (first_row + quad", i, " * 4) * ", number("depth", spec_.k), " + deep", i, ";");
    }
  }

  // The place in the product of the lane's column p in its row i.
  std::string place(std::int64_t p, std::int64_t i) {
    return "to" + text_of(p) + " + " + number("columns", spec_.n, i);
  }

  void write_first_sums() {
    for (std::int64_t p = 0; p < t_.columns; ++p) {
      for (std::int64_t q = 0; q < staged_.quads; ++q) {
        std::string value = writer_.splat(writer_.zero());
        if (!part_.begins) {
          std::string left[4];  // by the pass before
          for (std::int64_t i = 0; i < 4; ++i) {
            const std::string there = both(row_there("row + " + text_of(4 * q + i)), column_there(p));
            left[i] = or_zero(there, writer_.load("c", place(p, 4 * q + i)));
          }
          value = writer_.vector(left[0], left[1], left[2], left[3]);
        }
        text_.line(writer_.vector_type(), " ", sum_name(p, q), " = ", value, ";");
      }
    }
  }

  std::string second_factor(std::int64_t p) {
    const std::string at = "k * " + number("columns", spec_.n) + " + column" + text_of(p);
    return or_zero(both(depth_there(), column_there(p)), writer_.load("b", at));
  }

  // Four rows of a depth make a vector.
  void stage_rows() {
    for (std::int64_t first = 0, i = 0; first < texels(); first += t_.lanes(), ++i) {
      text_.line(within_count(first, t_.lanes(), texels()), "{");
      if (spare_depth()) text_.line("  int k = step * ", t_.depth, " + deep", i, ";");
      std::string value[4];
      for (std::int64_t j = 0; j < 4; ++j) {
        const std::string there =
            both(depth_there(), row_there("first_row + quad" + text_of(i) + " * 4 + " + text_of(j)));
        const std::string at =
            "from" + text_of(i) + " + " + number("depth", spec_.k, j) + " + step * " + text_of(t_.depth);
        value[j] = "a" + text_of(j);
        text_.line("  float ", value[j], " = ", or_zero(there, writer_.load("a", at)), ";");
      }
      text_.line("  ", writer_.store("part_a",
                                     "deep" + text_of(i) + " * " + text_of(staged_.vector_row) + " + quad" + text_of(i),
                                     writer_.vector(value[0], value[1], value[2], value[3])));
      text_.line("}");
    }
  }

  void write_column(std::int64_t p) {
    text_.line(there_or_always(column_there(p)));
    const bool adds_bias = bias_ && part_.ends;
    if (adds_bias) text_.line("  float bias", p, " = ", writer_.load("bias", "column" + text_of(p)), ";");
    for (std::int64_t i = 0; i < t_.rows; ++i) {
      std::string value = sum_name(p, i / 4) + "." + "xyzw"[i % 4];
      if (adds_bias) value += " + bias" + text_of(p);
      if (part_.ends) value = writer_.activated(value, spec_.activation);
      const std::string there = row_there("row + " + text_of(i));
      text_.line("  ", there.empty() ? "" : "if (" + there + ") ", writer_.store("c", place(p, i), value));
    }
    text_.line("}");
  }

  const GemmSpec& spec_;
  const GemmTile& t_;
  const SumPart& part_;
  const SharedTile staged_;
  const bool bias_;
  KernelWriter writer_;
  Text& text_;
};

std::int64_t steps_of(const GemmSpec& spec, const GemmTile& tile) noexcept { return divide_up(spec.k, tile.depth); }

}  // namespace

std::string gemm_tile_variant(const GemmTile& tile) {
  return std::string(family) + "rows=" + text_of(tile.rows) + ",columns=" + text_of(tile.columns) +
         ",lanes_r=" + text_of(tile.lanes_r) + ",lanes_c=" + text_of(tile.lanes_c) + ",depth=" + text_of(tile.depth);
}

std::optional<GemmTile> gemm_tile_of(std::string_view variant) {
  if (!variant.starts_with(family)) return std::nullopt;
  const std::string_view id = variant;
  variant.remove_prefix(family.size());
  GemmTile tile;
  const bool whole = take_number(variant, "rows=", tile.rows) && take_number(variant, ",columns=", tile.columns) &&
                     take_number(variant, ",lanes_r=", tile.lanes_r) &&
                     take_number(variant, ",lanes_c=", tile.lanes_c) && take_number(variant, ",depth=", tile.depth) &&
                     variant.empty();
  if (!whole || gemm_tile_variant(tile) != id) return std::nullopt;
  return tile;
}

std::int64_t shared_bytes(const GemmTile& tile) noexcept {
  return tile.depth * (tile.tile_columns() + 4 * vector_row(tile)) * 4;
}

std::int64_t passes_of(const GemmSpec& spec, const GemmTile& tile) noexcept {
  return passes_for(steps_of(spec, tile), 1);
}

Status check(const GemmSpec& spec, const GemmTile& t, const DeviceInfo& device) {
  const TileExtents extents{"rows", "columns", t.rows, t.columns, t.lanes_r, t.lanes_c, t.depth, shared_bytes(t)};
  if (Status status = check_tile("gemm/shared", extents, device); !status.ok()) return status;
  if (Status status = check_limits(tensors_of(spec), device); !status.ok()) return status;
  // What is reckoned, though not loaded: rows and columns of whole tiles, depths of whole steps.
  constexpr std::int64_t most_index = std::numeric_limits<std::int32_t>::max();
  const std::int64_t rows = spec.m + t.tile_rows() + 4 * t.lanes(), columns = spec.n + t.tile_columns();
  const std::int64_t depths = spec.k + 2 * t.depth;
  if (rows > most_index / depths || depths > most_index / columns || rows > most_index / columns) {
    return does_not_fit("an index beyond 32 bits");
  }
  if (Status status = check_grid(grid_of(spec, t), device); !status.ok()) return does_not_fit(status.message);
  return {};
}

Result<KernelPlan> gemm_shared(const GemmSpec& spec, const GemmTile& tile, const DeviceInfo& device, const Form& form) {
  KernelPlan plan;
  plan.variant = gemm_tile_variant(tile);
  plan.tensors = tensors_of(spec);
  if (Status status = check(spec, tile, device); !status.ok()) return status;
  for (const SumPart& part : parts_of(steps_of(spec, tile))) {
    plan.passes.push_back(GemmSharedText(spec, tile, part, form).write());
  }
  return plan;
}

}  // namespace kiln::dynamic_shaders
