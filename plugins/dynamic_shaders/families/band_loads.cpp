#include "dynamic_shaders/families/band_loads.hpp"

namespace kiln::dynamic_shaders {

std::string BandLoads::at(std::int64_t place) {
  const std::int64_t in_last = (bands_ - 1) * step_ + place;
  if (in_last < 0 || place >= plane_) return {};
  const std::string name = place < 0 ? "xm" + std::to_string(-place) : "x" + std::to_string(place);
  if (!loaded_.insert(place).second) return name;
  std::string guard;
  if (place < 0) guard = "band >= " + std::to_string(-place);
  if (in_last >= plane_) {
    if (!guard.empty()) guard += " && ";
    guard += "band < " + std::to_string(plane_ - place);
  }
  const bool vector = element_ == Element::vector;
  const std::string value = writer_.load("x", "first_x + " + std::to_string(place));
  const std::string zero = vector ? writer_.splat(writer_.zero()) : writer_.zero();
  writer_.body().line(vector ? writer_.vector_type() : "float", " ", name, " = ",
                      guard.empty() ? value : guard + " ? " + value + " : " + zero, ";");
  return name;
}

}  // namespace kiln::dynamic_shaders
