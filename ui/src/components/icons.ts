/** The one set of icons: outlines on a grid of 20, drawn with one stroke width. */
export const icons = {
  panel: "M3.5 4.5h13v11h-13zM8 4.5v11",
  plus: "M10 4v12M4 10h12",
  pencil: "M4 16l.8-3.4 8.4-8.4a1.4 1.4 0 0 1 2 0l.6.6a1.4 1.4 0 0 1 0 2l-8.4 8.4z",
  trash: "M4 6h12M8 6V4h4v2M5.5 6l.7 10.5h7.6L14.5 6M8.6 9v4.5M11.4 9v4.5",
  chevron: "M5.5 8l4.5 4.5L14.5 8",
  file: "M5.5 3h6l3 3v11h-9zM11.5 3v3h3",
  send: "M10 16V4.5M5 9.5l5-5 5 5",
  stop: "M5 5h10v10H5z",
  copy: "M7.5 7.5h8v9h-8zM12.5 7.5v-4h-8v9h3",
  check: "M4.5 10.5L8 14l7.5-8",
  again: "M15.5 10a5.5 5.5 0 1 1-1.7-4M15.5 3.5V7H12",
  sliders:
    "M3.5 6.5H10M15 6.5h1.5M3.5 13.5H5M10 13.5h6.5M12.5 8.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7.5 15.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  close: "M5 5l10 10M15 5L5 15",
  cpu: "M6 6h8v8H6zM8 3v3M12 3v3M8 14v3M12 14v3M3 8h3M3 12h3M14 8h3M14 12h3",
  gpu: "M2.5 5.5h15v8h-15zM5.5 13.5v3M2.5 3.5v13M12 12a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM6 8h2M6 11h2",
  moving: "M3.5 4.5h5v11h-5zM11 10h6M14.5 7.5L17 10l-2.5 2.5",
  proving: "M8.5 3.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM12 12l4.5 4.5M6.3 8.6l1.6 1.6 2.9-3.2",
  clock: "M10 3.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM10 6.5V10l2.5 2",
  refused: "M7.3 3.5h5.4l3.8 3.8v5.4l-3.8 3.8H7.3l-3.8-3.8V7.3zM7.7 7.7l4.6 4.6M12.3 7.7l-4.6 4.6",
  loading: "M10 3.5a6.5 6.5 0 1 1-6.5 6.5M10 7v6M7.5 10.5L10 13l2.5-2.5",
  info: "M10 3.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM10 9.2v4.3M10 6.6h.01",
  none: "M10 3.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM6.8 10h6.4",
  restart: "M4.5 10a5.5 5.5 0 1 0 1.7-4M4.5 3.5V7H8",
  search: "M8.5 3.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM12 12l4.5 4.5",
  pause: "M7 5v10M13 5v10",
  play: "M6.5 4.5l9 5.5-9 5.5z",
  folder: "M3 5h5l1.5 2H17v9H3z",
  down: "M10 4v12M5 11l5 5 5-5",
  undo: "M7 5L3.5 8.5 7 12M3.5 8.5h8a4 4 0 0 1 0 8H9",
  keyboard: "M2.5 5.5h15v9h-15zM5.5 8.5h.01M8.5 8.5h.01M11.5 8.5h.01M14.5 8.5h.01M6.5 11.5h7",
} as const;

/** An icon by its name. */
export type IconName = keyof typeof icons;
