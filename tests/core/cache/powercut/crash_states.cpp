#include "core/cache/powercut/crash_states.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace kiln::test {
namespace {

bool is_name(Change change) noexcept { return change != Change::written && change != Change::cut; }

class Explorer {
 public:
  Explorer(const FolderImage& before, std::span<const Operation> operations, const Exploration& exploration,
           const std::function<void(const CrashState&)>& on_state)
      : before_(before), operations_(operations), exploration_(exploration), on_state_(on_state) {}

  Explored all() {
    one_of_ = 1;
    for (std::size_t cut = 0; cut <= operations_.size(); ++cut) visit(cut, {});
    one_of_ = exploration_.one_of;
    one_lost();
    late();
    for (const auto& [subject, places] : by_subject(std::string::npos)) one_file(places);
    for (const auto& [subject, places] : by_subject('.')) by_chance(places, exploration_.by_chance);
    anything();
    return explored_;
  }

 private:
  using Fates = std::map<std::size_t, Fate>;
  using Places = std::vector<std::size_t>;

  void visit(std::size_t cut, const Fates& fates) {
    if (explored_.combinations++ % one_of_ != 0) return;
    CrashState state{before_, cut, std::vector<Fate>(cut, Fate::kept)};
    for (const auto& [place, fate] : fates) {
      const bool safe = place < cut && operations_[place].safe != 0 && operations_[place].safe < cut;
      if (place < cut && !safe) state.fates[place] = fate;
    }
    for (std::size_t i = 0; i < cut; ++i) apply(state.image, operations_[i], state.fates[i]);
    if (!seen_.insert(state.image.fingerprint()).second) return;
    ++explored_.states;
    on_state_(state);
  }

  void one_lost() {
    for (std::size_t place = 0; place < operations_.size(); ++place) {
      for (const Fate fate : fates_of(operations_[place].change).subspan(1)) {
        const std::size_t last = std::min(operations_.size(), place + exploration_.cuts_after);
        for (std::size_t cut = place + 1; cut <= last; ++cut) visit(cut, {{place, fate}});
        visit(operations_.size(), {{place, fate}});
      }
    }
  }

  void late() {
    for (std::size_t cut = 1; cut <= operations_.size(); ++cut) {
      const std::size_t nearest = cut - std::min(cut, exploration_.cuts_after);
      for (std::size_t since = nearest; since < cut; ++since) late_since(since == nearest ? 0 : since, cut);
    }
  }

  void late_since(std::size_t since, std::size_t cut) {
    Fates names;
    for (std::size_t i = since; i < cut; ++i) {
      if (is_name(operations_[i].change)) names[i] = Fate::lost;
    }
    visit(cut, names);
    for (const Fate fate : fates_of(Change::written).subspan(1)) {
      Fates data;
      for (std::size_t i = since; i < cut; ++i) {
        if (operations_[i].change == Change::written) data[i] = fate;
        if (operations_[i].change == Change::cut) data[i] = Fate::lost;
      }
      visit(cut, data);
    }
  }

  // By the name up to the sign.
  std::map<std::string, Places> by_subject(std::size_t sign) const {
    std::map<std::string, Places> found;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const std::string& name = operations_[i].subject;
      found[sign == std::string::npos ? name : name.substr(0, name.find(static_cast<char>(sign), 1))].push_back(i);
    }
    return found;
  }

  void one_file(const Places& places) {
    ++explored_.files;
    std::size_t combinations = 1;
    for (const std::size_t place : places) {
      combinations *= fates_of(operations_[place].change).size();
      if (combinations > exploration_.exhaustive) return by_chance(places, exploration_.by_chance);
    }
    ++explored_.files_in_all_their_ways;
    for (std::size_t combination = 0; combination < combinations; ++combination) {
      Fates fates;
      std::size_t left = combination;
      for (const std::size_t place : places) {
        const auto possible = fates_of(operations_[place].change);
        fates[place] = possible[left % possible.size()];
        left /= possible.size();
      }
      visit(operations_.size(), fates);
    }
  }

  void by_chance(const Places& places, std::size_t times) {
    for (std::size_t time = 0; time < times; ++time) {
      visit(places.back() + 1 + random_() % (operations_.size() - places.back()), chosen(places, 2));
    }
  }

  void anything() {
    Places places(operations_.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    for (std::size_t time = 0; time < exploration_.anything; ++time) {
      visit(1 + random_() % operations_.size(), chosen(places, 2 + random_() % 10));
    }
  }

  // Of so many one is not kept.
  Fates chosen(const Places& places, std::size_t one_in) {
    Fates fates;
    for (const std::size_t place : places) {
      const auto possible = fates_of(operations_[place].change);
      if (random_() % one_in == 0) fates[place] = possible[random_() % possible.size()];
    }
    return fates;
  }

  const FolderImage& before_;
  const std::span<const Operation> operations_;
  const Exploration& exploration_;
  const std::function<void(const CrashState&)>& on_state_;
  std::size_t one_of_ = 1;
  std::mt19937 random_{20'26};
  std::set<std::string> seen_;
  Explored explored_;
};

}  // namespace

Explored explore(const FolderImage& before, std::span<const Operation> operations, const Exploration& exploration,
                 const std::function<void(const CrashState&)>& on_state) {
  return Explorer(before, operations, exploration, on_state).all();
}

std::string text_of(const CrashState& state, std::span<const Operation> operations) {
  std::string text = "cut after " + std::to_string(state.cut) + " of " + std::to_string(operations.size());
  if (state.cut != 0) text += ", " + text_of(operations[state.cut - 1]);
  for (std::size_t i = 0; i < state.cut; ++i) {
    if (state.fates[i] == Fate::kept) continue;
    text += "; " + std::string(to_string(state.fates[i])) + ": " + std::to_string(i + 1) + " " + text_of(operations[i]);
  }
  return text;
}

}  // namespace kiln::test
