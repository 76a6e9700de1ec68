// The name that was meant where another was typed.
//
// Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ferry {

// The one of `names` that is nearest to `name` by Levenshtein's distance; empty when none is near
// enough to be what was meant: more than two letters, and more than a third of them, are others.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> names);

// "; did you mean X?" for the end of a message, or nothing.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> names);

}  // namespace ferry
