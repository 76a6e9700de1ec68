#!/bin/sh
# make_page.sh PAGE STYLE MODEL MAP CELLS PANELS: prints C++ that defines kWebPage (server.h), the page
# with the other files in the places of their marks.
set -eu
printf '#include "tools/ferryctl/web/server.h"\n\nnamespace ferry::tools {\nconst std::string_view kWebPage = R"page('
sed -e "/@STYLE@/{r $2" -e 'd}' -e "/@MODEL@/{r $3" -e 'd}' -e "/@MAP@/{r $4" -e 'd}' -e "/@CELLS@/{r $5" -e 'd}' \
  -e "/@PANELS@/{r $6" -e 'd}' "$1"
printf ')page";\n}  // namespace ferry::tools\n'
