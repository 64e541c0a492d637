// The start of the report.
startTheme();
startCharts();
startCosts();
startDetail();
startCompare();
startGallery();
startLosses();
startLabels();
openLinked();
