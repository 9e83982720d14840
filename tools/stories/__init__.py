"""The story grammar of tools/gen-stories: tables of words, a small template language, and plots.

  words.py      how words change: past tense, -ing, plurals, articles
  template.py   the template language: alternatives, references, lists
  people.py     who stories are about: names, animals, traits, helpers
  things.py     toys, tools, food, clothes and other objects
  places.py     where stories happen, and what there is to see
  phrases.py    feelings, lessons, openings, endings, ways to speak
  tale.py       one story being told: its cast, time, weather and who has what
  plots_*.py    the plots, each a function that tells one kind of story
  check.py      faults that no story may have, and numbers about many stories"""
