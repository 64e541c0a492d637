// The start of the report. What a section that could not be made would need is not there.
startTheme();
startCharts();
startTables();
startCosts();
if (isMade("gallery")) startDetail();
startCompare();
if (isMade("gallery")) startGallery();
startLosses();
startLabels();
startSelects();
if (isMade("gallery")) openLinked();
