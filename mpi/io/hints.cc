#include "mpi/io/hints.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/number_text.h"

namespace ferry::mpi {
namespace {

// The values that a key may have.
enum class Form : uint8_t {
  kText,      // anything; Ferry only gives it back
  kPositive,  // a number from 1 to kMost
  kNatural,   // a number from 0 to kMost
  kSwitch,    // enable, disable, automatic
  kBoolean,   // true, false
  kMode,      // an octal number
};

constexpr int64_t kMost = int64_t{1} << 40;
constexpr int64_t kLargestBuffer = int64_t{1} << 30;

struct Key {
  const char* name;
  const char* initial;  // null: the key is not there until a program gives it
  Form form;
  bool only_at_open = false;
};

constexpr std::array kKeys = {
    Key{"access_style", nullptr, Form::kText},
    Key{"cb_block_size", nullptr, Form::kNatural},
    Key{"cb_buffer_size", "16777216", Form::kPositive},
    Key{"cb_config_list", nullptr, Form::kText, true},
    Key{"cb_nodes", nullptr, Form::kPositive},
    Key{"chunked", nullptr, Form::kText},
    Key{"chunked_item", nullptr, Form::kText},
    Key{"chunked_size", nullptr, Form::kText},
    Key{"collective_buffering", "true", Form::kBoolean},
    Key{"direct_read", "false", Form::kBoolean, true},
    Key{"direct_write", "false", Form::kBoolean, true},
    Key{"file_perm", nullptr, Form::kMode, true},
    Key{"filename", nullptr, Form::kText, true},
    Key{"ind_rd_buffer_size", "4194304", Form::kPositive},
    Key{"ind_wr_buffer_size", "4194304", Form::kPositive},
    Key{"io_node_list", nullptr, Form::kText, true},
    Key{"nb_proc", nullptr, Form::kNatural},
    Key{"num_io_nodes", nullptr, Form::kNatural, true},
    Key{"romio_cb_read", "automatic", Form::kSwitch},
    Key{"romio_cb_write", "automatic", Form::kSwitch},
    Key{"romio_ds_read", "automatic", Form::kSwitch},
    Key{"romio_ds_write", "disable", Form::kSwitch},
    Key{"romio_no_indep_rw", "false", Form::kBoolean, true},
    Key{"striping_factor", nullptr, Form::kNatural, true},
    Key{"striping_unit", nullptr, Form::kNatural, true},
};

const Key* FindKey(std::string_view name) {
  const auto* const found =
      std::find_if(kKeys.begin(), kKeys.end(), [name](const Key& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : found;
}

bool IsAllowed(Form form, const std::string& value) {
  switch (form) {
    case Form::kText:
      return true;
    case Form::kPositive:
    case Form::kNatural: {
      const std::optional<int64_t> number = NumberIn<int64_t>(value);
      return number && *number >= (form == Form::kPositive ? 1 : 0) && *number <= kMost;
    }
    case Form::kSwitch:
      return value == "enable" || value == "disable" || value == "automatic";
    case Form::kBoolean:
      return value == "true" || value == "false";
    case Form::kMode: {
      const std::optional<int64_t> mode = NumberIn<int64_t>(value, 8);
      return mode && *mode >= 0 && *mode <= 0777;
    }
  }
  return false;
}

}  // namespace

Hints::Hints() {
  for (const Key& key : kKeys) {
    if (key.initial != nullptr) {
      entries_.emplace_back(key.name, key.initial);
    }
  }
  ReadValues();
}

void Hints::Take(const std::vector<Info::Entry>& given, bool at_open) {
  for (const auto& [name, value] : given) {
    const Key* const key = FindKey(name);
    // Ferry never reads and writes back bytes between those of a program: others may write there.
    if (key == nullptr || (key->only_at_open && !at_open) || !IsAllowed(key->form, value) ||
        name == "romio_ds_write" || name == "direct_read" || name == "direct_write") {
      continue;
    }
    const auto place = std::lower_bound(
        entries_.begin(), entries_.end(), name,
        [](const Info::Entry& entry, const std::string& wanted) { return entry.first < wanted; });
    if (place != entries_.end() && place->first == name) {
      place->second = value;
    } else {
      entries_.emplace(place, name, value);
    }
  }
  ReadValues();
}

void Hints::ReadValues() {
  values_.cb_buffer_size = Number("cb_buffer_size");
  values_.cb_nodes = Number("cb_nodes");
  values_.read_buffer_size = Number("ind_rd_buffer_size");
  values_.write_buffer_size = Number("ind_wr_buffer_size");
  values_.striping_factor = Number("striping_factor");
  values_.striping_unit = Number("striping_unit");
  values_.collective_read = SwitchOf("romio_cb_read");
  values_.collective_write = SwitchOf("romio_cb_write");
  values_.sieve_reads = SwitchOf("romio_ds_read");
}

const std::string* Hints::Find(const std::string& key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&key](const Info::Entry& entry) { return entry.first == key; });
  return found == entries_.end() ? nullptr : &found->second;
}

std::optional<mode_t> Hints::file_perm() const {
  const std::string* const text = Find("file_perm");
  const std::optional<int64_t> mode = text == nullptr ? std::nullopt : NumberIn<int64_t>(*text, 8);
  return mode ? std::optional(static_cast<mode_t>(*mode)) : std::nullopt;
}

int64_t Hints::Number(const char* key) const {
  const std::string* const text = Find(key);
  const int64_t number = text == nullptr ? 0 : NumberIn<int64_t>(*text).value_or(0);
  return std::min(number, kLargestBuffer);
}

Switch Hints::SwitchOf(const char* key) const {
  const std::string* const text = Find(key);
  return text == nullptr || *text == "automatic" ? Switch::kAutomatic
         : *text == "enable"                     ? Switch::kEnable
                                                 : Switch::kDisable;
}

}  // namespace ferry::mpi
