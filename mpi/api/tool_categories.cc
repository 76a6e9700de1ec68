// The tool information interface: categories (MPI 5.0, section 15.3.9). Each group of Ferry's
// options is one, the performance variables are another, and the events; none is part of another.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/api/function.h"
#include "mpi/api/tool_call.h"
#include "mpi/mpi_t/control.h"
#include "mpi/mpi_t/event_types.h"
#include "mpi/mpi_t/performance.h"

namespace ferry::mpi {
namespace {

struct Category {
  std::string name;
  std::string description;
  std::vector<int> controls;
  std::vector<int> counters;
  std::vector<int> events;
};

std::vector<Category> MakeCategories() {
  std::vector<Category> made;
  const auto& controls = ControlVariables();
  for (size_t i = 0; i < controls.size(); ++i) {
    const std::string title = config::GroupTitle(controls[i].option->group);
    if (made.empty() || made.back().name != title) {  // the table is in groups
      made.push_back({title, "Options of Ferry: " + title, {}, {}, {}});
    }
    made.back().controls.push_back(static_cast<int>(i));
  }
  Category& counters = made.emplace_back();
  counters.name = "Counters";
  counters.description = "What this rank has done in its job";
  for (size_t i = 0; i < PerformanceVariables().size(); ++i) {
    counters.counters.push_back(static_cast<int>(i));
  }
  Category& events = made.emplace_back();
  events.name = "Events";
  events.description = "What happens in this rank";
  for (int i = 0; i < kEventKinds; ++i) {
    events.events.push_back(i);
  }
  return made;
}

const std::vector<Category>& Categories() {
  static const auto& categories = *new std::vector<Category>(MakeCategories());
  return categories;
}

// Null: the call has failed.
const Category* At(ToolCall& call, int index) {
  call.NeedIndex(index, Categories().size(), "categories");
  return call.ok() ? &Categories()[static_cast<size_t>(index)] : nullptr;
}

void NeedRoom(ToolCall& call, int len, const int* indices) {
  if (len < 0) {
    call.Refuse(MPI_T_ERR_INVALID, "len is " + std::to_string(len));
  }
  if (len > 0) {
    call.Need(indices, "indices");
  }
}

int PutIndices(const char* name, int index, int len, int* indices,
               const std::vector<int> Category::*members) {
  ToolCall call(name);
  const Category* const category = At(call, index);
  NeedRoom(call, len, indices);
  return call.Then([&] {
    const std::vector<int>& all = category->*members;
    std::copy_n(all.begin(), std::min(all.size(), static_cast<size_t>(len)), indices);
  });
}

}  // namespace

FERRY_MPI_CALL(int, MPI_T_category_get_num, (int* num_cat)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(num_cat, "num_cat");
  return call.Then([&] { *num_cat = static_cast<int>(Categories().size()); });
}

FERRY_MPI_CALL(int, MPI_T_category_get_info,
               (int cat_index, char* name, int* name_len, char* desc, int* desc_len, int* num_cvars,
                int* num_pvars, int* num_categories)) {
  ToolCall call(FERRY_MPI_NAME);
  const Category* const category = At(call, cat_index);
  return call.Then([&] {
    PutText(category->name, name, name_len);
    PutText(category->description, desc, desc_len);
    PutResult(num_cvars, static_cast<int>(category->controls.size()));
    PutResult(num_pvars, static_cast<int>(category->counters.size()));
    PutResult(num_categories, 0);
  });
}

FERRY_MPI_CALL(int, MPI_T_category_get_index, (const char* name, int* cat_index)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(name, "name");
  call.Need(cat_index, "cat_index");
  return call.Then([&]() -> Failure {
    const auto& all = Categories();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [name](const Category& each) { return each.name == name; });
    if (found == all.end()) {
      return {MPI_T_ERR_INVALID_NAME, "there is no category \"" + std::string(name) + "\""};
    }
    *cat_index = static_cast<int>(found - all.begin());
    return {};
  });
}

FERRY_MPI_CALL(int, MPI_T_category_get_cvars, (int cat_index, int len, int indices[])) {
  return PutIndices(FERRY_MPI_NAME, cat_index, len, indices, &Category::controls);
}

FERRY_MPI_CALL(int, MPI_T_category_get_pvars, (int cat_index, int len, int indices[])) {
  return PutIndices(FERRY_MPI_NAME, cat_index, len, indices, &Category::counters);
}

FERRY_MPI_CALL(int, MPI_T_category_get_events, (int cat_index, int len, int indices[])) {
  return PutIndices(FERRY_MPI_NAME, cat_index, len, indices, &Category::events);
}

FERRY_MPI_CALL(int, MPI_T_category_get_num_events, (int cat_index, int* num_events)) {
  ToolCall call(FERRY_MPI_NAME);
  const Category* const category = At(call, cat_index);
  call.Need(num_events, "num_events");
  return call.Then([&] { *num_events = static_cast<int>(category->events.size()); });
}

// No category lies in another.
FERRY_MPI_CALL(int, MPI_T_category_get_categories, (int cat_index, int len, int indices[])) {
  ToolCall call(FERRY_MPI_NAME);
  (void)At(call, cat_index);
  NeedRoom(call, len, indices);
  return call.result();
}

// They stay as they are.
FERRY_MPI_CALL(int, MPI_T_category_changed, (int* update_number)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(update_number, "update_number");
  return call.Then([&] { *update_number = 0; });
}

}  // namespace ferry::mpi
