// The start of the report.
startTheme();
startCharts();
startDetail();
startCompare();
startGallery();
startLosses();
startLabels();
openLinked();
